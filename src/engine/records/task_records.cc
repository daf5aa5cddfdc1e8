#include "engine/records/task_records.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"

namespace detent {

void TaskRecords::put(Queue& queue, std::optional<Place> from, StoredTask to) {
  DETENT_CHECK(to.task.queue == queue.record.queue);
  if (from && from->lane == Lane::ready) queue.ready_at(*from).take_from_lane();
  if (to.place.lane == Lane::ready) ++queue.ready_at(to.place).in_lane;
  // The wall clock was put back.
  if (to.place.lane == Lane::ended && to.place <= forgotten_to_) {
    forgotten_to_ = begin_of(Lane::ended);
  }
  queues_.note_change(queue);
  staging_.put(from, std::move(to));
}

void TaskRecords::erase(Queue& queue, Place from) {
  if (from.lane == Lane::ready) queue.ready_at(from).take_from_lane();
  queues_.note_change(queue);
  staging_.erase(from);
}

void TaskRecords::uncount(Queue& queue, TaskId id, WallTime due_at, WallTime created_at,
                          std::size_t payload_bytes) {
  schedules_.task_ended(id);
  due_counts_.add(due_at, created_at, -1);
  DETENT_CHECK(queue.record.waiting > 0);
  --queue.record.waiting;
  DETENT_CHECK(queue.record.bytes >= payload_bytes);
  queue.record.bytes -= payload_bytes;
}

void TaskRecords::set_aside(std::span<const Place> places) {
  if (places.empty()) return;
  DETENT_CHECK(!writer_.is_writing());
  for (const Place& place : places) {
    ahead_.erase(place.id.value);
    schedules_.task_ended(place.id);
  }
  news_.count(&TaskCounters::quarantined, places.size());
  if (Result<void> moved = store_.quarantine(places); !moved) {
    writer_.stop(std::move(moved).error());
  }
}

Result<std::vector<Result<Task>>> TaskRecords::read_all(const std::vector<LoadedTask*>& tasks) {
  std::vector<Place> places;
  for (const LoadedTask* task : tasks) {
    if (!is_at_hand(task->id())) places.push_back(task->place);
  }
  std::vector<Result<Task>> stored;
  if (!places.empty()) {
    ASSIGN_OR_RETURN(stored, store_.read_at(places));
    DETENT_CHECK(stored.size() == places.size());
  }
  std::vector<Result<Task>> records;
  records.reserve(tasks.size());
  auto next_stored = stored.begin();
  for (const LoadedTask* task : tasks) {
    if (const Staging::Change* change = staging_.find(task->id())) {
      DETENT_CHECK(change->to.has_value());
      records.emplace_back(change->to->task);
    } else if (is_at_hand(task->id())) {
      records.emplace_back(ahead_.at(task->id().value).task);
    } else {
      records.push_back(std::move(*next_stored++));
    }
  }
  DETENT_CHECK(next_stored == stored.end() && records.size() == tasks.size());
  return records;
}

Result<std::optional<StoredTask>> TaskRecords::find(TaskId id) {
  if (const Staging::Change* change = staging_.find(id)) return change->to;
  const auto ahead = ahead_.find(id.value);
  if (ahead != ahead_.end()) return std::optional(ahead->second);
  return store_.find(id);
}

bool TaskRecords::is_there(TaskId id) {
  if (const Staging::Change* change = staging_.find(id)) return change->to.has_value();
  if (ahead_.contains(id.value)) return true;
  const Result<std::optional<StoredTask>> stored = store_.find(id);
  return !stored || stored->has_value();
}

void TaskRecords::read_ahead(std::span<const TaskId> ids) {
  ahead_.clear();
  Result<std::vector<StoredTask>> tasks = store_.find_all(ids);
  if (!tasks) return;
  for (StoredTask& stored : *tasks) {
    const TaskId id = stored.place.id;
    ahead_.emplace(id.value, std::move(stored));
  }
}

WriteBatch TaskRecords::take_staged() {
  ahead_.clear();
  WriteBatch batch = staging_.take();
  queues_.take_changes(batch);
  batch.keys = keys_.take();
  auto [schedules, removed_schedules] = schedules_.take_changes();
  batch.schedules = std::move(schedules);
  batch.removed_schedules = std::move(removed_schedules);
  batch.due_counts = due_counts_.take_changes();
  batch.last_id = last_id_;
  DETENT_CHECK(staging_.empty() && keys_.empty());
  return batch;
}

Result<void> TaskRecords::commit() {
  if (writer_.stopped_by()) return *writer_.stopped_by();
  return writer_.commit(take_staged());
}

Result<void> TaskRecords::write_moved() {
  if (writer_.stopped_by()) return *writer_.stopped_by();
  return writer_.write_moved(take_staged());
}

Result<bool> TaskRecords::forget_ended(WallTime now, std::size_t limit) {
  const Result<std::size_t> trimmed = store_.trim_keys(now, limit);
  if (!trimmed) return writer_.stop(trimmed.error());
  const Result<TaskPage> page =
      store_.read(forgotten_to_, last_at(Lane::ended, std::max(now, forgotten_to_.at)), limit);
  if (!page) return false;  // the next call tries again
  for (const StoredTask& stored : page->tasks) staging_.erase(stored.place);
  if (!page->tasks.empty()) forgotten_to_ = page->tasks.back().place;
  set_aside(page->damaged);
  return *trimmed == limit || page->read_to;
}

}  // namespace detent
