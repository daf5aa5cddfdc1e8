// The marks tell which copy of a far task is valid.
//
// When a task comes back, the external scheduler may still have its copy. A mark on the task id
// says that this copy is not valid. A mark is stored as a key that belongs to no queue. The name of
// the key is the task id, its content is the due time of the copy, and it never expires. To remove
// a mark, the engine writes the key again with an expiry that has passed. Later it is trimmed with
// the other expired keys.
//
// If the key is damaged, the engine cannot tell whether the mark was set or removed. The mark then
// counts as set if the store has the task, and as removed if the store does not have the task. So
// the copy in the external scheduler stays valid if it may be the only copy. The price: a task that
// ended here may come back.
//
// The engine removes a mark when the external scheduler has forgotten the copy. But if the external
// scheduler is restored from an older backup, it has the copy again, and the mark is gone. For this
// case, another key "forgotten ID" remembers that the copy is not valid. This key lasts until
// kForgottenFor after the due time of the copy, or until the task is handed over again.
//
// The external stamp (external_stamp.h) is stored in two keys that never expire.
#include "engine/verbs/far_verbs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "detent/check.h"
#include "store/lasting_keys.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kPageMarks = 1'000;

constexpr std::string_view kStamp = "external stamp";
constexpr std::string_view kCompleteAt = "external complete at";
static_assert(kStamp.starts_with(kLastingKeys) && kCompleteAt.starts_with(kLastingKeys));

/// These keys sort behind all marks, because the name of a mark has only digits. So a list of the
/// marks ends before them.
std::string forgotten_key(TaskId id) { return "forgotten " + to_string(id); }
bool is_behind_marks(std::string_view key) { return key > ":"; }

KeyRecord mark_record(TaskId id, WallTime due_at, std::optional<WallTime> expires_at) {
  return {.queue = kNoQueue,
          .key = to_string(id),
          .id = id,
          .content = static_cast<std::uint64_t>(due_at.time_since_epoch().count()),
          .expires_at = expires_at};
}
WallTime due_of(const KeyRecord& mark) {
  return WallTime{milliseconds{static_cast<std::int64_t>(mark.content)}};
}

KeyRecord forgotten_record(TaskId id, WallTime expires_at) {
  return {.queue = kNoQueue,
          .key = forgotten_key(id),
          .id = id,
          .content = 0,
          .expires_at = expires_at};
}

}  // namespace

Result<TaskPage> FarVerbs::far_tasks(Place after, std::size_t limit) {
  TRY(parts_.expect_working());
  return parts_.store.read(std::max(after, parts_.window.loaded_to()), end_of(Lane::due), limit);
}

void FarVerbs::mark(std::span<const Task> tasks) {
  for (const Task& task : tasks) {
    parts_.records.keys().put(mark_record(task.id, task.due_at, std::nullopt));
  }
  parts_.writer.must_sync();
}

Result<void> FarVerbs::unmark(std::span<const TaskId> ids) {
  TRY(parts_.expect_working());
  std::vector<std::string> names;
  names.reserve(ids.size());
  for (const TaskId id : ids) names.push_back(to_string(id));
  ASSIGN_OR_RETURN(const std::vector<KeyRecord> marks, parts_.store.find_keys(kNoQueue, names));
  for (const KeyRecord& mark : marks) {
    parts_.records.keys().put(forgotten_record(mark.id, due_of(mark) + kForgottenFor));
  }
  for (const TaskId id : ids) {
    parts_.records.keys().put(mark_record(id, WallTime{}, parts_.time.wall_now()));
  }
  return ok();
}

Result<std::vector<TaskId>> FarVerbs::marked(std::size_t limit) {
  TRY(parts_.expect_working());
  std::vector<TaskId> ids;
  std::optional<std::string> after = "";
  while (after && ids.size() < limit) {
    ASSIGN_OR_RETURN(KeyPage page, parts_.store.read_keys(kNoQueue, *after, kPageMarks));
    for (const KeyRecord& record : page.records) {
      const bool is_mark = !record.expires_at && !is_behind_marks(record.key);
      if (is_mark) ids.push_back(record.id);
    }
    for (const std::string& name : page.damaged) {
      const std::optional<TaskId> id = parse_task_id(name);
      if (!id) continue;  // the name is not a task id, so the key is not a mark
      ASSIGN_OR_RETURN(const bool is_here, parts_.tasks.has(*id));
      if (is_here) ids.push_back(*id);
    }
    after = std::move(page.read_to);
    if (after && is_behind_marks(*after)) break;
  }
  ids.resize(std::min(ids.size(), limit));
  return ids;
}

Result<bool> FarVerbs::is_marked(TaskId id) {
  // A mark with an expiry counts as removed, even if a step back of the wall clock puts the expiry
  // into the future.
  const Result<std::optional<KeyRecord>> record =
      parts_.records.keys().find(kNoQueue, to_string(id), kNeverDue);
  if (!record && record.error().code == ErrorCode::data_loss) return parts_.tasks.has(id);
  if (!record) return record.error();
  return record->has_value();
}

Result<bool> FarVerbs::was_forgotten(TaskId id) {
  const Result<std::optional<KeyRecord>> record =
      parts_.records.keys().find(kNoQueue, forgotten_key(id), parts_.time.wall_now());
  // If the key is damaged, the copy in the external scheduler counts as valid.
  if (!record && record.error().code == ErrorCode::data_loss) return false;
  if (!record) return record.error();
  return record->has_value();
}

Result<std::size_t> FarVerbs::hand_over(std::span<const Task> tasks) {
  TRY(parts_.expect_working());
  std::vector<Place> places;
  std::vector<const Task*> on_disk;
  for (const Task& task : tasks) {
    // A task that is in memory is due soon, so it is not far. A task that changed in this turn
    // differs from its stored record, so it waits for the next hand-over.
    if (parts_.tasks.find_loaded(task.id) != nullptr || parts_.records.is_staged(task.id)) continue;
    if (!task.key.empty()) continue;
    places.push_back({.lane = Lane::due, .at = task.due_at, .id = task.id});
    on_disk.push_back(&task);
  }
  ASSIGN_OR_RETURN(const std::vector<Result<Task>> records, parts_.store.read_at(places));
  // These reads can fail, so they come before the first change.
  std::vector<std::string> names;
  for (const Task* const task : on_disk) names.push_back(forgotten_key(task->id));
  ASSIGN_OR_RETURN(const std::vector<KeyRecord> forgotten, parts_.store.find_keys(kNoQueue, names));
  DETENT_CHECK(records.size() == places.size());
  std::vector<TaskId> gone;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!records[i] || *records[i] != *on_disk[i]) continue;
    const Task& task = *records[i];
    Queue& queue = parts_.queues.queue_of(task.queue);
    parts_.records.uncount(queue, task.id, task.due_at, task.created_at, task.payload.data.size());
    parts_.records.erase(queue, places[i]);
    parts_.news.tell(task.id, queue, TaskEvent::away, TaskState::scheduled);
    gone.push_back(task.id);
  }
  for (const TaskId id : gone) {
    parts_.records.keys().put(mark_record(id, WallTime{}, parts_.time.wall_now()));
  }
  std::ranges::sort(gone);
  for (const KeyRecord& record : forgotten) {
    if (!std::ranges::binary_search(gone, record.id)) continue;
    parts_.records.keys().put(forgotten_record(record.id, WallTime{}));
  }
  parts_.writer.must_sync();
  return gone.size();
}

Result<std::size_t> FarVerbs::put_back(std::span<const Task> tasks) {
  TRY(parts_.expect_working());
  parts_.writer.must_sync();
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

Result<bool> FarVerbs::put_back(const Task& task) {
  ASSIGN_OR_RETURN(const bool is_marked, this->is_marked(task.id));
  if (is_marked) return false;
  ASSIGN_OR_RETURN(const bool was_forgotten, this->was_forgotten(task.id));
  if (was_forgotten) {
    mark(std::span(&task, 1));
    return false;
  }
  Result<bool> is_new = tasks_.restore(task);
  // On a conflict, the engine already has a task with this id. That task stays as it is.
  if (!is_new && is_new.error().code == ErrorCode::conflict) is_new = false;
  if (!is_new) return is_new;
  mark(std::span(&task, 1));
  return is_new;
}

Result<bool> FarVerbs::is_here_or_marked(TaskId id) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(const bool is_here, parts_.tasks.has(id));
  if (is_here) return true;
  ASSIGN_OR_RETURN(const bool is_marked, this->is_marked(id));
  if (is_marked) return true;
  return was_forgotten(id);
}

void FarVerbs::set_external_stamp(const ExternalStamp& stamp) {
  parts_.records.keys().put({.queue = kNoQueue,
                             .key = std::string(kStamp),
                             .id = TaskId{stamp.tasks},
                             .content = stamp.generation,
                             .expires_at = {}});
  parts_.records.keys().put(
      {.queue = kNoQueue,
       .key = std::string(kCompleteAt),
       .id = {},
       .content = static_cast<std::uint64_t>(stamp.complete_at.time_since_epoch().count()),
       .expires_at = {}});
  parts_.writer.must_sync();
}

Result<ExternalStamp> FarVerbs::external_stamp() {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(const KeyRecord stamp, lasting_key(kStamp));
  ASSIGN_OR_RETURN(const KeyRecord complete_at, lasting_key(kCompleteAt));
  return ExternalStamp{
      .generation = stamp.content,
      .tasks = stamp.id.value,
      .complete_at = WallTime{milliseconds{static_cast<std::int64_t>(complete_at.content)}}};
}

/// Returns a record of zeros if the key is missing or damaged.
Result<KeyRecord> FarVerbs::lasting_key(std::string_view key) {
  Result<std::optional<KeyRecord>> record = parts_.records.keys().find(kNoQueue, key, WallTime{});
  if (!record && record.error().code != ErrorCode::data_loss) return record.error();
  if (!record || !*record) return KeyRecord{};
  return **std::move(record);
}

}  // namespace detent
