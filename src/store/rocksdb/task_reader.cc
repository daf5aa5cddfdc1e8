#include "store/rocksdb/task_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "detent/check.h"
#include "store/record_format.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/multi_get.h"
#include "store/rocksdb/database/range_scan.h"
#include "store/rocksdb/database/rocksdb_error.h"
#include "store/rocksdb/database/slices.h"
#include "store/store_error.h"

namespace detent {

Result<TaskPage> TaskReader::read(const Place& after, const Place& until, std::size_t limit) {
  DETENT_CHECK(limit > 0);
  DETENT_CHECK(after.lane == until.lane && after.queue == until.queue);
  ASSIGN_OR_RETURN(std::vector<Met> met, meet(after, until, limit));
  TRY(read_missing(met));
  TaskPage page;
  for (Met& each : met) add_to_page(page, limit, each.place, *std::move(each.task));
  return page;
}

/// Merges the settled tasks of a lane with the accepted ones. Returns the next `limit` of them.
Result<std::vector<TaskReader::Met>> TaskReader::meet(const Place& after, const Place& until,
                                                      std::size_t limit) {
  const std::vector<Place> accepted = accepted_.read(after, until, limit);
  auto next = accepted.begin();
  std::vector<Met> met;
  const bool is_due = after.lane == Lane::due;
  const Place start = is_due ? std::max(after, bounds_.low_watermark) : after;
  if (start < until) {
    rocksdb::ColumnFamilyHandle* const family = db_.family_of(after.lane);
    RangeScan scan(db_.db(), family, {first_key_after(start), first_key_after(until)});
    for (; scan.is_valid() && met.size() < limit; scan.next()) {
      ASSIGN_OR_RETURN(const Place place,
                       is_due ? parse_due_key(scan.key()) : parse_lane_key(scan.key()));
      while (next != accepted.end() && *next < place && met.size() < limit) {
        met.push_back({*next++, std::nullopt});
      }
      // This entry is of a settle that does not count yet. The task is still in the accepted
      // family.
      if (place.id > bounds_.settled_to) continue;
      DETENT_CHECK(met.empty() || met.back().place < place);
      if (met.size() < limit) met.push_back({place, decode(place, family, scan.value())});
    }
    if (!scan.status().ok()) return to_error("read lane", scan.status());
  }
  while (next != accepted.end() && met.size() < limit) met.push_back({*next++, std::nullopt});
  return met;
}

Result<void> TaskReader::read_missing(std::vector<Met>& met) {
  std::vector<Place> places;
  for (const Met& each : met) {
    if (!each.task) places.push_back(each.place);
  }
  if (places.empty()) return ok();
  ASSIGN_OR_RETURN(std::vector<Result<Task>> tasks, read_at(places));
  auto task = tasks.begin();
  DETENT_CHECK(tasks.size() == places.size());
  for (Met& each : met) {
    if (!each.task) each.task = std::move(*task++);
  }
  DETENT_CHECK(task == tasks.end());
  return ok();
}

/// Accepted tasks have higher ids than settled ones, so they follow on the page.
Result<TaskPage> TaskReader::read_by_id(TaskId after, std::size_t limit) {
  DETENT_CHECK(limit > 0);
  ASSIGN_OR_RETURN(std::vector<Place> places, settled_places(after, limit));
  DETENT_CHECK(places.size() <= limit);
  const std::vector<Place> accepted =
      accepted_.read_by_id(std::max(after, bounds_.settled_to), limit - places.size());
  places.insert(places.end(), accepted.begin(), accepted.end());
  ASSIGN_OR_RETURN(std::vector<Result<Task>> tasks, read_at(places));
  DETENT_CHECK(tasks.size() == places.size());
  TaskPage page;
  for (std::size_t i = 0; i < places.size(); ++i) {
    add_to_page(page, limit, places[i], std::move(tasks[i]));
  }
  return page;
}

/// Returns the places of settled tasks with ids above `after`.
Result<std::vector<Place>> TaskReader::settled_places(TaskId after, std::size_t limit) {
  std::vector<Place> places;
  if (after >= bounds_.settled_to) return places;
  RangeScan scan(db_.db(), db_.ids(),
                 {id_key(TaskId{after.value + 1}), id_key(TaskId{bounds_.settled_to.value + 1})});
  for (; scan.is_valid() && places.size() < limit; scan.next()) {
    ASSIGN_OR_RETURN(const TaskId id, parse_id_key(scan.key()));
    // A malformed place is replaced by the front place. No record is at the front place, so the
    // page reports the task as damaged.
    places.push_back(parse_id_value(id, scan.value()).value_or(front_place(id)));
  }
  if (!scan.status().ok()) return to_error("read tasks by id", scan.status());
  return places;
}

Result<std::vector<Result<Task>>> TaskReader::read_at(std::span<const Place> places) {
  std::vector<Result<Task>> tasks(places.size(), Result<Task>(Error{}));
  const std::array families{db_.accepted(), db_.due(), db_.lanes()};
  std::array<std::vector<std::size_t>, 3> wanted;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    if (place.id <= bounds_.settled_to) {
      wanted[place.lane == Lane::due ? 1 : 2].push_back(i);
    } else if (accepted_.find(place.id) == place) {
      wanted[0].push_back(i);
    } else {
      tasks[i] = not_stored(place);
    }
  }
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (!wanted[i].empty()) TRY(read_family(families[i], places, wanted[i], tasks));
  }
  return tasks;
}

Result<void> TaskReader::read_family(rocksdb::ColumnFamilyHandle* family,
                                     std::span<const Place> places,
                                     const std::vector<std::size_t>& wanted,
                                     std::vector<Result<Task>>& tasks) {
  std::vector<std::pair<std::string, std::size_t>> wanted_keys;
  wanted_keys.reserve(wanted.size());
  for (const std::size_t i : wanted) {
    const Place& place = places[i];
    wanted_keys.emplace_back(family == db_.accepted() ? id_key(place.id) : place_key(place), i);
  }
  std::sort(wanted_keys.begin(), wanted_keys.end());
  std::vector<std::string> keys;
  keys.reserve(wanted.size());
  for (auto& [key, i] : wanted_keys) keys.push_back(std::move(key));
  Result<void> read = ok();
  DETENT_CHECK(keys.size() == wanted.size());
  const auto take = [&](std::size_t n, const rocksdb::Status& status, const rocksdb::Slice& value) {
    const std::size_t i = wanted_keys[n].second;
    if (status.ok()) {
      tasks[i] = decode(places[i], family, view(value));
    } else if (status.IsNotFound()) {
      tasks[i] = not_stored(places[i]);
    } else if (status.IsCorruption()) {
      tasks[i] = to_error("read task " + to_string(places[i].id), status);
    } else {
      read = to_error("read tasks", status);
    }
  };
  multi_get(db_.db(), family, keys, take);
  return read;
}

Result<Task> TaskReader::decode(const Place& place, rocksdb::ColumnFamilyHandle* family,
                                std::string_view value) const {
  if (family != db_.accepted()) return decode_record(place.id, value);
  return decode_record(place.id, split_accepted(place.id, value).record);
}

Result<std::optional<StoredTask>> TaskReader::find(TaskId id) {
  const std::string context = "find task " + to_string(id);
  std::optional<Place> place;
  if (id > bounds_.settled_to) {
    place = accepted_.find(id);
  } else {
    rocksdb::PinnableSlice value;
    const rocksdb::Status status =
        db_.db().Get(rocksdb::ReadOptions(), db_.ids(), id_key(id), &value);
    if (!status.ok() && !status.IsNotFound()) return to_error(context, status);
    if (status.ok()) {
      ASSIGN_OR_RETURN(place, parse_id_value(id, view(value)));
    }
  }
  if (!place) return std::optional<StoredTask>();
  ASSIGN_OR_RETURN(const std::optional<std::string> record, raw_record(*place));
  if (!record) {
    return Error{ErrorCode::data_loss, context + ": the index names a place without a record", ""};
  }
  ASSIGN_OR_RETURN(Task task, decode_record(id, *record));
  return std::optional<StoredTask>({*place, std::move(task)});
}

Result<std::vector<StoredTask>> TaskReader::find_all(std::span<const TaskId> ids) {
  ASSIGN_OR_RETURN(const std::vector<Place> places, places_of(ids));
  ASSIGN_OR_RETURN(std::vector<Result<Task>> tasks, read_at(places));
  DETENT_CHECK(tasks.size() == places.size());
  std::vector<StoredTask> found;
  found.reserve(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i]) found.push_back({places[i], *std::move(tasks[i])});
  }
  return found;
}

/// Returns the places of the tasks that exist, each once. Leaves out a task whose place is damaged.
Result<std::vector<Place>> TaskReader::places_of(std::span<const TaskId> ids) {
  std::vector<TaskId> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  const auto accepted = std::upper_bound(sorted.begin(), sorted.end(), bounds_.settled_to);
  std::vector<std::string> keys;
  keys.reserve(sorted.size());
  for (auto id = sorted.begin(); id != accepted; ++id) keys.push_back(id_key(*id));
  std::vector<Place> places;
  places.reserve(sorted.size());
  Result<void> read = ok();
  const auto take = [&](std::size_t n, const rocksdb::Status& status, const rocksdb::Slice& value) {
    if (status.ok()) {
      if (const Result<Place> place = parse_id_value(sorted[n], view(value))) {
        places.push_back(*place);
      }
    } else if (!status.IsNotFound() && !status.IsCorruption()) {
      read = to_error("find tasks", status);
    }
  };
  multi_get(db_.db(), db_.ids(), keys, take);
  TRY(read);
  for (auto id = accepted; id != sorted.end(); ++id) {
    if (const std::optional<Place> place = accepted_.find(*id)) places.push_back(*place);
  }
  return places;
}

Result<std::optional<std::string>> TaskReader::raw_record(const Place& place) {
  const bool is_accepted = place.id > bounds_.settled_to;
  if (is_accepted && accepted_.find(place.id) != place) return std::optional<std::string>();
  std::string value;
  const rocksdb::Status status =
      is_accepted ? db_.db().Get(rocksdb::ReadOptions(), db_.accepted(), id_key(place.id), &value)
                  : db_.db().Get(rocksdb::ReadOptions(), db_.family_of(place.lane),
                                 place_key(place), &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return to_error("read task " + to_string(place.id), status);
  if (!is_accepted) return std::optional<std::string>(std::move(value));
  return std::optional<std::string>(split_accepted(place.id, value).record);
}

}  // namespace detent
