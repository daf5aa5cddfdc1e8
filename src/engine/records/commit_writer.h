// Writes the batches of the engine to its store, and decides when to sync.
//
// Without a sync interval, each commit is synced before it is acknowledged. With a sync interval,
// commits are written without a sync, so they survive the end of the process but not a power cut.
// One empty synced write follows, at most one interval after the first of these commits. If a write
// fails, the state on disk is unknown. The writer then writes no more, and answers all calls with
// the error.
// Thread-compatible.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/histogram.h"
#include "base/result.h"
#include "detent/clock.h"
#include "store/store.h"

namespace detent {

class CommitWriter {
 public:
  /// The figures of the writes, without writes that only moved tasks.
  struct Written {
    std::uint64_t commits = 0;
    std::uint64_t tasks = 0;  // tasks that these writes have changed
    HistogramSnapshot time;   // duration of one write
  };

  /// `store` and `clock` must outlive it.
  CommitWriter(Store& store, const Clock& clock, std::chrono::milliseconds sync_interval) noexcept
      : store_(store), clock_(clock), sync_interval_(sync_interval) {}

  /// From now on, the store calls `meanwhile` during a write if `is_wanted` returned true before
  /// the write (Store::write_while).
  void write_beside(std::function<bool()> is_wanted, WhileWriting meanwhile);
  /// Whether `meanwhile` is running.
  bool is_writing() const noexcept { return is_writing_; }

  /// The next commit is synced, whatever the interval, together with all buffered writes.
  void must_sync() noexcept { must_sync_ = true; }
  /// Writes a batch whose changes will be acknowledged. Does nothing if the batch is empty and no
  /// sync is needed. Errors: unavailable. After the first error, every call fails.
  Result<void> commit(const WriteBatch& batch);
  /// Writes a batch without a sync. Use it for changes that a crash may undo, because no client
  /// knows about them.
  Result<void> write_moved(const WriteBatch& batch);
  Result<void> sync_if_due();
  /// When sync_if_due() must be called next. Empty: not before the next commit.
  std::optional<MonotonicTime> next_sync() const noexcept;

  /// The store failed outside a write. Returns the error that is reported from now on. This is the
  /// first error, because later errors follow from it.
  Error stop(Error error);
  const std::optional<Error>& stopped_by() const noexcept { return stopped_by_; }

  Written written() const { return {commits_, tasks_, time_.snapshot()}; }

 private:
  Result<void> write(const WriteBatch& batch, Durability durability);

  Store& store_;
  const Clock& clock_;
  const std::chrono::milliseconds sync_interval_;  // 0: sync each commit

  std::function<bool()> is_beside_wanted_;  // `is_wanted` of write_beside(); null before that
  WhileWriting meanwhile_;
  bool is_writing_ = false;
  bool must_sync_ = false;                       // with the next commit
  std::optional<MonotonicTime> unsynced_since_;  // the oldest commit that is not synced
  std::optional<Error> stopped_by_;
  std::uint64_t commits_ = 0;
  std::uint64_t tasks_ = 0;
  Histogram time_;
};

}  // namespace detent
