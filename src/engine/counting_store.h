// A store that counts the writes that pass through it, by what they ask of the disk. What is only
// buffered can be held back until the next sync: then it is gone with the store, as after a power
// cut. For tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "detent/clock.h"
#include "store/store.h"

namespace detent {

class CountingStore final : public Store {
 public:
  CountingStore(Store& store, const Clock& clock) noexcept : store_(store), clock_(clock) {}

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
    return store_.read(after, until, limit);
  }
  Result<TaskPage> read_by_id(TaskId after, std::size_t limit) override {
    return store_.read_by_id(after, limit);
  }
  Result<std::vector<Result<Task>>> read_at(std::span<const Place> places) override {
    return store_.read_at(places);
  }
  Result<std::optional<StoredTask>> find(TaskId id) override { return store_.find(id); }
  Result<void> quarantine(Place place) override { return store_.quarantine(place); }
  Result<std::optional<KeyRecord>> find_key(std::uint32_t queue, std::string_view key) override {
    return store_.find_key(queue, key);
  }
  Result<std::vector<KeyRecord>> read_keys(std::uint32_t queue, std::string_view after,
                                           std::size_t limit) override {
    return store_.read_keys(queue, after, limit);
  }
  Result<std::size_t> trim_keys(WallTime now, std::size_t limit) override {
    return store_.trim_keys(now, limit);
  }
  Result<std::vector<ScheduleRecord>> schedules() override { return store_.schedules(); }
  Result<std::vector<QueueRecord>> queues() override { return store_.queues(); }
  Result<std::vector<DueCount>> due_counts() override { return store_.due_counts(); }
  Result<std::uint64_t> quarantined() override { return store_.quarantined(); }
  TaskId last_id() const noexcept override { return store_.last_id(); }
  std::uint32_t last_queue_number() const noexcept override { return store_.last_queue_number(); }
  Result<std::uint64_t> begin_epoch() override { return store_.begin_epoch(); }

  int synced_commits = 0;
  int buffered_commits = 0;
  int empty_syncs = 0;
  int empty_buffered = 0;
  std::optional<MonotonicTime> unsynced_since;
  std::vector<MonotonicTime> synced_at;
  bool holds_buffered = false;

 private:
  Store& store_;
  const Clock& clock_;
  std::vector<WriteBatch> held_;
};

}  // namespace detent
