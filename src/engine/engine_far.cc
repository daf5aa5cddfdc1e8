// Tasks that another system keeps while they are far, and the marks that tell which copy counts.
//
// A mark is a key of no queue: the id as its name, for ever; unmarked, it has expired and is
// trimmed with the other keys. One that can't be read may have said either. It counts as a mark
// while the task is here, and as none when it is not: so the copy there is kept if it may be the
// only one, though then a task may come back that has ended here.
#include <algorithm>
#include <optional>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"

namespace detent {
namespace {

constexpr std::size_t kPageMarks = 1'000;

KeyRecord mark_record(TaskId id) {
  return {.queue = kNoQueue, .key = to_string(id), .id = id, .content = 0, .expires_at = {}};
}

}  // namespace

Result<TaskPage> Engine::far_tasks(Place after, std::size_t limit) {
  if (stopped_by()) return *stopped_by();
  return store_.read(std::max(after, window_.loaded_to()), end_of(Lane::due), limit);
}

void Engine::mark(std::span<const TaskId> ids) {
  for (const TaskId id : ids) records_.keys().put(mark_record(id));
  writer_.must_sync();
}

void Engine::unmark(std::span<const TaskId> ids) {
  for (const TaskId id : ids) {
    KeyRecord record = mark_record(id);
    record.expires_at = time_.wall_now();
    records_.keys().put(std::move(record));
  }
}

Result<std::vector<TaskId>> Engine::marked(std::size_t limit) {
  if (stopped_by()) return *stopped_by();
  std::vector<TaskId> ids;
  std::optional<std::string> after = "";
  while (after && ids.size() < limit) {
    ASSIGN_OR_RETURN(KeyPage page, store_.read_keys(kNoQueue, *after, kPageMarks));
    for (const KeyRecord& record : page.records) {
      if (!record.expires_at) ids.push_back(record.id);
    }
    for (const std::string& name : page.damaged) {
      const std::optional<TaskId> id = parse_task_id(name);
      if (!id) continue;  // a lease's
      ASSIGN_OR_RETURN(const bool is_here, this->is_here(*id));
      if (is_here) ids.push_back(*id);
    }
    after = std::move(page.read_to);
  }
  ids.resize(std::min(ids.size(), limit));
  return ids;
}

Result<bool> Engine::is_marked(TaskId id) {
  // What expires at all has expired: the wall clock may have been stepped back since.
  const Result<std::optional<KeyRecord>> record =
      records_.keys().find(kNoQueue, to_string(id), kNeverDue);
  if (!record && record.error().code == ErrorCode::data_loss) return is_here(id);
  if (!record) return record.error();
  return record->has_value();
}

Result<bool> Engine::is_here(TaskId id) {
  if (tasks_.find_loaded(id) != nullptr) return true;
  const Result<std::optional<StoredTask>> stored = records_.find(id);
  if (!stored && stored.error().code != ErrorCode::data_loss) return stored.error();
  return !stored || stored->has_value();
}

Result<std::size_t> Engine::hand_over(std::span<const Task> tasks) {
  if (stopped_by()) return *stopped_by();
  std::vector<Place> places;
  std::vector<const Task*> on_disk;
  for (const Task& task : tasks) {
    // What has changed in this turn is not as it is in the store; it may go the next time.
    if (tasks_.find_loaded(task.id) != nullptr || records_.is_staged(task.id)) continue;
    if (!task.key.empty()) continue;
    places.push_back({.lane = Lane::due, .at = task.due_at, .id = task.id});
    on_disk.push_back(&task);
  }
  ASSIGN_OR_RETURN(const std::vector<Result<Task>> records, store_.read_at(places));
  std::vector<TaskId> gone;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!records[i] || *records[i] != *on_disk[i]) continue;
    const Task& task = *records[i];
    Queue& queue = queues_.queue_of(task.queue);
    records_.uncount(queue, task.id, task.due_at, task.created_at, task.payload.data.size());
    records_.erase(queue, places[i]);
    news_.tell(task.id, queue, TaskEvent::away, TaskState::scheduled);
    gone.push_back(task.id);
  }
  unmark(gone);
  writer_.must_sync();
  return gone.size();
}

Result<std::size_t> Engine::put_back(std::span<const Task> tasks) {
  if (stopped_by()) return *stopped_by();
  writer_.must_sync();
  std::size_t count = 0;
  std::optional<Error> error;
  for (const Task& task : tasks) {
    const Result<bool> is_new = put_back(task);
    if (!is_new) error = is_new.error();
    if (is_new && *is_new) ++count;
  }
  if (error) return *std::move(error);
  return count;
}

Result<bool> Engine::put_back(const Task& task) {
  ASSIGN_OR_RETURN(const bool is_marked, this->is_marked(task.id));
  if (is_marked) return false;
  Result<bool> is_new = restore(task);
  if (!is_new && is_new.error().code == ErrorCode::conflict) is_new = false;  // that one counts
  if (!is_new) return is_new;
  mark(std::span(&task.id, 1));
  return is_new;
}

Result<bool> Engine::is_here_or_marked(TaskId id) {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(const bool is_here, this->is_here(id));
  if (is_here) return true;
  return is_marked(id);
}

}  // namespace detent
