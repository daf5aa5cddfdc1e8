#include "store/postgres/task_rows.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "detent/check.h"
#include "store/postgres/batch_statement.h"
#include "store/record_format.h"
#include "store/store_error.h"

namespace detent {

namespace {

/// The largest number of rows that one query returns or asks for. A larger page takes several
/// queries.
constexpr std::size_t kMostRows = 10'000;

constexpr const char* kSelect =
    "select id, at_ms, queue, priority, lane::bigint, record from detent.task ";

Place place_of(const Rows& rows, std::size_t row) {
  return {.lane = static_cast<Lane>(rows.bigint(row, 4)),
          .queue = static_cast<std::uint32_t>(rows.bigint(row, 2)),
          .priority = static_cast<std::uint32_t>(rows.bigint(row, 3)),
          .at = WallTime{std::chrono::milliseconds{rows.bigint(row, 1)}},
          .id = TaskId{static_cast<std::uint64_t>(rows.bigint(row, 0))}};
}

Result<Task> task_of(const Rows& rows, std::size_t row) {
  return decode_record(TaskId{static_cast<std::uint64_t>(rows.bigint(row, 0))}, rows.bytes(row, 5));
}

/// The columns that sort a lane, except those that are equal in the whole lane. The text of a query
/// names the lane, because the index of each lane has only the rows of its lane.
std::string columns_of(Lane lane) {
  return lane == Lane::ready ? "priority, at_ms, id" : "at_ms, id";
}

std::string values_of(const Place& place, Statement& statement) {
  const std::string priority =
      place.lane == Lane::ready ? statement.add_bigint(place.priority) + ", " : "";
  return "(" + priority + statement.add_bigint(milliseconds_of(place.at)) + ", " +
         statement.add_bigint(id_number(place.id)) + ")";
}

Statement page_statement(Fence fence, const Place& after, const Place& until, std::size_t rows) {
  Statement statement;
  const std::string columns = columns_of(after.lane);
  std::string where = "where " + in_shard(statement, fence) +
                      " and lane = " + std::to_string(static_cast<int>(after.lane));
  if (after.lane == Lane::ready || after.lane == Lane::dead) {
    where += " and queue = " + statement.add_bigint(after.queue);
  }
  where += " and (" + columns + ") > " + values_of(after, statement);
  where += " and (" + columns + ") <= " + values_of(until, statement);
  statement.set_sql(kSelect + where + " order by " + columns + " limit " + std::to_string(rows));
  return statement;
}

Statement id_statement(Fence fence, TaskId after, std::size_t rows) {
  Statement statement;
  const std::string of_shard = "where " + in_shard(statement, fence);
  statement.set_sql(kSelect + of_shard + " and id > " + statement.add_bigint(id_number(after)) +
                    " order by id limit " + std::to_string(rows));
  return statement;
}

/// Fills a page with queries for at most kMostRows rows. `statement_after` makes the query for the
/// rows after a place.
template <class StatementAfter>
Result<TaskPage> fill_page(Connection& connection, std::size_t limit, Place after,
                           StatementAfter statement_after) {
  DETENT_CHECK(limit > 0);
  TaskPage page;
  for (std::size_t left = limit;;) {
    const std::size_t wanted = std::min(left, kMostRows);
    ASSIGN_OR_RETURN(const Rows rows, connection.run_one(statement_after(after, wanted)));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      after = place_of(rows, row);
      add_to_page(page, limit, after, task_of(rows, row));
    }
    left -= rows.size();
    if (left == 0 || rows.size() < wanted) return page;
  }
}

}  // namespace

Result<Rows> TaskRows::rows_of(const std::vector<std::int64_t>& ids) {
  Statement statement;
  const std::string of_shard = "where " + in_shard(statement, fence_);
  statement.set_sql(kSelect + of_shard + " and id = any(" + statement.add_bigints(ids) + ")");
  statement.keep_plan();
  return connection_.run_one(std::move(statement));
}

Result<TaskPage> TaskRows::read(Place after, Place until, std::size_t limit) {
  DETENT_CHECK(after.lane == until.lane);
  DETENT_CHECK(after.queue == until.queue);
  return fill_page(connection_, limit, after, [&](const Place& from, std::size_t rows) {
    return page_statement(fence_, from, until, rows);
  });
}

Result<TaskPage> TaskRows::read_by_id(TaskId after, std::size_t limit) {
  Place from;
  from.id = after;
  return fill_page(connection_, limit, from, [&](const Place& last, std::size_t rows) {
    return id_statement(fence_, last.id, rows);
  });
}

Result<std::vector<Result<Task>>> TaskRows::read_at(std::span<const Place> places) {
  std::vector<Result<Task>> tasks;
  tasks.reserve(places.size());
  while (tasks.size() < places.size()) {
    const std::span<const Place> part =
        places.subspan(tasks.size(), std::min(kMostRows, places.size() - tasks.size()));
    std::vector<std::int64_t> ids;
    ids.reserve(part.size());
    for (const Place& place : part) ids.push_back(id_number(place.id));
    DETENT_CHECK(ids.size() == part.size() && !ids.empty());
    ASSIGN_OR_RETURN(const Rows rows, rows_of(ids));
    std::unordered_map<std::uint64_t, std::size_t> row_of;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      row_of.emplace(static_cast<std::uint64_t>(rows.bigint(row, 0)), row);
    }
    for (const Place& place : part) {
      const auto found = row_of.find(place.id.value);
      if (found == row_of.end() || place_of(rows, found->second) != place) {
        tasks.emplace_back(not_stored(place));
      } else {
        tasks.push_back(task_of(rows, found->second));
      }
    }
  }
  DETENT_CHECK(tasks.size() == places.size());
  return tasks;
}

Result<std::optional<StoredTask>> TaskRows::find(TaskId id) {
  Statement statement;
  const std::string of_shard = "where " + in_shard(statement, fence_);
  statement.set_sql(kSelect + of_shard + " and id = " + statement.add_bigint(id_number(id)));
  statement.keep_plan();
  ASSIGN_OR_RETURN(const Rows rows, connection_.run_one(std::move(statement)));
  if (rows.empty()) return std::optional<StoredTask>();
  ASSIGN_OR_RETURN(Task task, task_of(rows, 0));
  return std::optional<StoredTask>({place_of(rows, 0), std::move(task)});
}

Result<std::vector<StoredTask>> TaskRows::find_all(std::span<const TaskId> ids) {
  std::vector<StoredTask> found;
  const std::set<TaskId> each(ids.begin(), ids.end());
  for (auto next = each.begin(); next != each.end();) {
    std::vector<std::int64_t> part;
    for (; next != each.end() && part.size() < kMostRows; ++next) part.push_back(id_number(*next));
    DETENT_CHECK(!part.empty());
    ASSIGN_OR_RETURN(const Rows rows, rows_of(part));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (Result<Task> task = task_of(rows, row)) {
        found.push_back({place_of(rows, row), *std::move(task)});
      }
    }
  }
  return found;
}

}  // namespace detent
