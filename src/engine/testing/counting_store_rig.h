// A store for tests. It counts the writes by their kind of sync, and the pages read from the due
// order. It can hold buffered writes back until the next sync. If the store is closed before, these
// writes are lost, as after a power cut.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "detent/clock.h"
#include "store/testing/forwarding_store.h"

namespace detent {

class CountingStore final : public ForwardingStore {
 public:
  CountingStore(Store& store, const Clock& clock) noexcept
      : ForwardingStore(store), clock_(clock) {}

  Result<void> write(const WriteBatch& batch, Durability durability) override {
    const bool is_synced = durability == Durability::synced;
    if (batch.empty()) ++(is_synced ? empty_syncs : empty_buffered);
    if (!batch.empty()) ++(is_synced ? synced_commits : buffered_commits);
    if (is_synced) {
      unsynced_since.reset();
      synced_at.push_back(clock_.now());
    } else if (!unsynced_since) {
      unsynced_since = clock_.now();
    }
    if (holds_buffered && !is_synced) {
      held_.push_back(batch);
      return ok();
    }
    for (const WriteBatch& held : std::exchange(held_, {})) TRY(store_.write(held, durability));
    return store_.write(batch, durability);
  }

  Result<TaskPage> read(Place after, Place until, std::size_t limit) override {
    if (after.lane == Lane::due) ++due_pages;
    return store_.read(after, until, limit);
  }

  int due_pages = 0;
  int synced_commits = 0;
  int buffered_commits = 0;
  int empty_syncs = 0;
  int empty_buffered = 0;
  std::optional<MonotonicTime> unsynced_since;
  std::vector<MonotonicTime> synced_at;
  bool holds_buffered = false;

 private:
  const Clock& clock_;
  std::vector<WriteBatch> held_;
};

}  // namespace detent
