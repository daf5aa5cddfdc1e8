// The engine's writes to its store: which are synced, when, and what a failure means.
//
// With no sync interval each commit is synced before it is acknowledged. With one, commits are
// written without a sync, which survives the process but not the power, and one empty synced write
// follows at most so long after the first of them. After a write that failed nobody knows what is
// on disk: from then on nothing is written, and whoever asks is told why.
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
  /// What it has written, without what only moved.
  struct Written {
    std::uint64_t commits = 0;
    std::uint64_t tasks = 0;  // changed by them
    HistogramSnapshot time;   // of one write
  };

  /// `store` and `clock` must outlive it.
  CommitWriter(Store& store, const Clock& clock, std::chrono::milliseconds sync_interval) noexcept
      : store_(store), clock_(clock), sync_interval_(sync_interval) {}

  /// From now on, whenever `is_wanted` says so, the store is asked to have `meanwhile` called while
  /// it writes (Store::write_while).
  void write_beside(std::function<bool()> is_wanted, WhileWriting meanwhile);
  /// Whether `meanwhile` is running.
  bool is_writing() const noexcept { return is_writing_; }

  /// The next commit is synced, whatever the interval, and with it what was only buffered before.
  void must_sync() noexcept { must_sync_ = true; }
  /// Writes what is to be acknowledged then; nothing when the batch is empty and need not be
  /// synced. Errors: unavailable, for ever after the first.
  Result<void> commit(const WriteBatch& batch);
  /// Writes what nobody was told of, and a crash may take back: it needs no sync.
  Result<void> write_moved(const WriteBatch& batch);
  Result<void> sync_if_due();
  /// When sync_if_due() has something to do; none: not until the next commit.
  std::optional<MonotonicTime> next_sync() const noexcept;

  /// The store failed otherwise. Returns the error that is told from now on: the first one's, of
  /// which the others come.
  Error stop(Error error);
  const std::optional<Error>& stopped_by() const noexcept { return stopped_by_; }

  Written written() const { return {commits_, tasks_, time_.snapshot()}; }

 private:
  Result<void> write(const WriteBatch& batch, Durability durability);

  Store& store_;
  const Clock& clock_;
  const std::chrono::milliseconds sync_interval_;  // 0: none

  std::function<bool()> is_beside_wanted_;  // null: never
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
