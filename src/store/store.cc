// Fills pages, and finds many tasks or keys one by one. A back end overrides find_all() and
// find_keys() if it has a faster way.
#include "store/store.h"

#include <set>
#include <utility>

#include "detent/check.h"

namespace detent {

void add_to_page(TaskPage& page, std::size_t limit, Place place, Result<Task> task) {
  DETENT_CHECK(!page.read_to);
  DETENT_CHECK(page.tasks.size() + page.damaged.size() < limit);
  DETENT_CHECK(!task || task->id == place.id);
  if (task) {
    page.tasks.push_back({place, *std::move(task)});
  } else {
    page.damaged.push_back(place);
  }
  if (page.tasks.size() + page.damaged.size() == limit) page.read_to = place;
}

Result<std::vector<StoredTask>> Store::find_all(std::span<const TaskId> ids) {
  std::vector<StoredTask> tasks;
  for (const TaskId id : std::set<TaskId>(ids.begin(), ids.end())) {
    Result<std::optional<StoredTask>> task = find(id);
    if (!task && task.error().code != ErrorCode::data_loss) return std::move(task).error();
    if (task && *task) tasks.push_back(**std::move(task));
  }
  return tasks;
}

Result<std::vector<KeyRecord>> Store::find_keys(std::uint32_t queue,
                                                std::span<const std::string> keys) {
  std::vector<KeyRecord> records;
  for (const std::string& key : std::set<std::string>(keys.begin(), keys.end())) {
    Result<std::optional<KeyRecord>> record = find_key(queue, key);
    if (!record && record.error().code != ErrorCode::data_loss) return std::move(record).error();
    if (record && *record) records.push_back(**std::move(record));
  }
  return records;
}

Result<std::vector<ScheduleRecord>> Store::schedules() {
  ASSIGN_OR_RETURN(std::vector<Result<ScheduleRecord>> records, read_schedules());
  std::vector<ScheduleRecord> all;
  all.reserve(records.size());
  for (Result<ScheduleRecord>& record : records) {
    if (!record) return std::move(record).error();
    all.push_back(*std::move(record));
  }
  return all;
}

}  // namespace detent
