// The contract of store/store.h as a simple model. It has one map for each kind of record, and each
// read goes through the whole map. So the model is too simple to hide a bug. Also a source of
// random batches that obey the contract.
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
  std::set<TaskId> damaged;  // ids in `tasks`
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

/// Makes random batches that are valid for the present state of the model. Most ids rise; some are
/// below the highest id or belong to ended tasks. Most tasks end soon; a few move many times.
class RandomBatches {
 public:
  RandomBatches(Rng& rng, const StoreModel& model) noexcept : rng_(rng), model_(model) {}

  /// `rise` adds more tasks than it removes; `drain` removes more than it adds.
  enum class Tide : std::uint8_t { rise, drain };
  WriteBatch next(Tide tide);

  bool one_in(std::uint32_t n) { return rng_.below(n) == 0; }
  WallTime random_instant();
  std::uint32_t random_queue();
  Place random_place(TaskId id);
  /// An id up to the highest one that was given out. Its task may have ended. Sometimes 0.
  TaskId random_id() { return TaskId{std::uint64_t{rng_.below(highest_ + 1)} << 8}; }
  std::string random_key();

 private:
  /// A random stored task. Null if there is none, or if the batch already names the task.
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
  std::set<TaskId> touched_;  // by the batch that is being made
  std::uint32_t highest_ = 0;
  std::int64_t expiries_ = 0;
};

}  // namespace detent
