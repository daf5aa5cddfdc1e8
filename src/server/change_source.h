// Where the changes of tasks come from that are told to those who watch: the feed of one engine, or
// on a node of a cluster the feeds of all its shards and those of the other nodes
// (node_changes.h).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "detent/clock.h"
#include "engine/change_feed.h"
#include "task/task_change.h"

namespace detent::server {

/// For the one that watches, on its thread.
class ChangeSource {
 public:
  struct Taken {
    std::vector<TaskChange> changes;  // those of one task in the order in which they happened
    std::uint64_t missed = 0;         // after those, and before what is taken next
    bool has_gap = false;             // and more, nobody knows how many
  };

  virtual ~ChangeSource() = default;
  /// Changes are told from now on.
  virtual void watch() = 0;
  /// No more; those that wait are forgotten.
  virtual void unwatch() = 0;
  virtual Taken take() = 0;
  /// What the one that watches waits on; rung when there is something to take.
  virtual Doorbell& bell() noexcept = 0;
};

/// Of one engine.
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
