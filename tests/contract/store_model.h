// The contract of store/store.h as a model that cannot be wrong in an interesting way: one map a
// kind of record, and every read goes through all of it. And a source of random batches that
// respect the contract.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "store/store.h"

namespace detent {

class StoreModel {
 public:
  using KeyName = std::pair<std::uint32_t, std::string>;

  void write(const WriteBatch& batch);
  void quarantine(TaskId id);
  std::size_t trim_keys(WallTime now, std::size_t limit);

  TaskPage read(Place after, Place until, std::size_t limit) const;
  TaskPage read_by_id(TaskId after, std::size_t limit) const;

  std::map<TaskId, StoredTask> tasks;
  std::set<TaskId> damaged;  // of those
  std::map<std::string, QueueRecord> queues;
  std::map<std::string, ScheduleRecord> schedules;
  std::map<KeyName, KeyRecord> keys;
  std::map<DueBin, std::int64_t> due_counts;
  TaskId last_id;
  std::uint32_t last_queue_number = 0;
  std::uint64_t quarantined = 0;

 private:
  TaskPage page_of(const std::vector<Place>& places, std::size_t limit) const;
};

/// Random batches for the model as it is. Most ids rise, some lie below the highest or are of tasks
/// that ended; most tasks end young, a few move again and again.
class RandomBatches {
 public:
  RandomBatches(Rng& rng, const StoreModel& model) noexcept : rng_(rng), model_(model) {}

  /// `drain`: more goes than comes.
  enum class Tide : std::uint8_t { rise, drain };
  WriteBatch next(Tide tide);

  bool one_in(std::uint32_t n) { return rng_.below(n) == 0; }
  WallTime random_instant();
  std::uint32_t random_queue();
  Place random_place(TaskId id);
  /// One that was given out, a task's or not; 0 at times.
  TaskId random_id() { return TaskId{std::uint64_t{rng_.below(highest_ + 1)} << 8}; }
  std::string random_key();

 private:
  /// Nothing when the task found is in this batch already, or there is none.
  const StoredTask* random_task();
  void add_task(WriteBatch& batch);
  void move_task(WriteBatch& batch);
  void remove_task(WriteBatch& batch);
  void set_key(WriteBatch& batch);
  void change_queue(WriteBatch& batch);
  void change_schedule(WriteBatch& batch);
  void change_due_counts(WriteBatch& batch);
  QueueSettings random_settings();

  Rng& rng_;
  const StoreModel& model_;
  std::set<TaskId> touched_;  // by the batch in the making
  std::uint32_t highest_ = 0;
  std::int64_t expiries_ = 0;
};

}  // namespace detent
