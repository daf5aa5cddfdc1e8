// The source of the task changes that watching clients receive. On a single server it is the feed
// of the engine. On a node of a cluster it is the feeds of all its shards and of the other nodes
// (node_changes.h).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "detent/clock.h"
#include "engine/records/change_feed.h"
#include "task/task_change.h"

namespace detent::server {

/// Confined to the thread of its reader.
class ChangeSource {
 public:
  struct Taken {
    std::vector<TaskChange> changes;  // for each task, its changes are oldest first
    std::uint64_t missed = 0;         // after `changes`, and before the next take()
    bool has_gap = false;             // and an unknown number in addition
  };

  virtual ~ChangeSource() = default;
  /// Starts the reporting of changes.
  virtual void watch() = 0;
  /// Stops the reporting. Changes that were not yet taken are dropped.
  virtual void unwatch() = 0;
  virtual Taken take() = 0;
  /// The bell that the reader waits on. It rings when there are changes to take.
  virtual Doorbell& bell() noexcept = 0;
};

/// The changes of one engine.
class FeedSource final : public ChangeSource {
 public:
  /// `feed` must outlive it.
  explicit FeedSource(ChangeFeed& feed) : feed_(feed) {}

  void watch() override { feed_.watch(); }
  void unwatch() override { feed_.unwatch(); }
  Taken take() override {
    ChangeFeed::Taken taken = feed_.take();
    return {.changes = std::move(taken.changes), .missed = taken.missed};
  }
  Doorbell& bell() noexcept override { return feed_.bell(); }

 private:
  ChangeFeed& feed_;
};

}  // namespace detent::server
