// Collects the changes of the engines of this server into one log, and decides when: while a client
// or another node wants changes, and for one more minute. So a reader that reconnects within a
// minute misses no change, and engines note no changes that nobody reads.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "detent/clock.h"
#include "engine/records/change_feed.h"
#include "server/watch/change_log.h"
#include "server/watch/change_source.h"

namespace detent::server {

/// Confined to the thread of its reader, except new_feed() and bell(), which are thread-safe.
class ChangeCollector final : public ChangeSource {
 public:
  static constexpr std::chrono::minutes kKeptUnwanted{1};
  /// The shortest time between two collections of changes.
  static constexpr std::chrono::milliseconds kTakePeriod{50};

  /// `run` as for ChangeLog.
  explicit ChangeCollector(std::uint64_t run) : log_(run), bell_(own_bell_), rings_(false) {}
  /// The changes of one engine, which reports them to `feed`. `feed` must outlive it.
  ChangeCollector(std::uint64_t run, ChangeFeed& feed);
  ChangeCollector(const ChangeCollector&) = delete;
  ChangeCollector& operator=(const ChangeCollector&) = delete;

  /// Makes the feed for an engine. Owned by this and by the owner of the engine, who releases it
  /// after the engine has ended.
  std::shared_ptr<ChangeFeed> new_feed() DETENT_EXCLUDES(mutex_);
  Doorbell& bell() noexcept override { return bell_; }

  ChangeLog& log() noexcept override { return log_; }
  void watch() override DETENT_EXCLUDES(mutex_);
  void unwatch(MonotonicTime now) override;
  /// Another node wants the changes of now and of the next minute.
  void want(MonotonicTime now) DETENT_EXCLUDES(mutex_);
  /// Returns true while a client wants changes, and for one more minute.
  bool is_for_clients(MonotonicTime now) const noexcept {
    return is_watched_ || now < for_clients_until_;
  }
  MonotonicTime collect(MonotonicTime now) override DETENT_EXCLUDES(mutex_);
  /// Adds all changes of the engines to the log.
  void take_changes() DETENT_EXCLUDES(mutex_);
  void stop() override DETENT_EXCLUDES(mutex_);

 private:
  void start() DETENT_EXCLUDES(mutex_);

  ChangeLog log_;

  // These members synchronize themselves.
  Doorbell own_bell_;
  Doorbell& bell_;

  // Constant after construction.
  const bool rings_;  // a feed rings bell_; otherwise the feeds are looked at periodically

  // Guarded by mutex_.
  Mutex mutex_;
  std::vector<std::shared_ptr<ChangeFeed>> feeds_ DETENT_GUARDED_BY(mutex_);
  bool is_collecting_ DETENT_GUARDED_BY(mutex_) = false;  // the engines note changes

  // Used only by the thread of the reader.
  bool is_watched_ = false;
  MonotonicTime for_clients_until_ = MonotonicTime::min();
  MonotonicTime wanted_until_ = MonotonicTime::min();
  MonotonicTime next_take_ = MonotonicTime::min();
};

}  // namespace detent::server
