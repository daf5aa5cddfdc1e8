#include "store/postgres/batch_statement.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "store/meta_format.h"
#include "store/postgres/postgres_error.h"
#include "store/record_format.h"
#include "store/schedule_format.h"

namespace detent {

namespace {

/// Tasks as columns. Each column is one array.
struct TaskColumns {
  std::vector<std::int64_t> ids, at, queues, priorities, lanes;
  std::vector<std::string> records;

  void add(const StoredTask& stored) {
    const auto& [place, task] = stored;
    DETENT_CHECK(place.id == task.id && place.id.value != 0);
    DETENT_CHECK(place > begin_of(place.lane, place.queue));
    ids.push_back(id_number(place.id));
    at.push_back(milliseconds_of(place.at));
    queues.push_back(place.queue);
    priorities.push_back(place.priority);
    lanes.push_back(static_cast<std::int64_t>(place.lane));
    records.push_back(encode_record(task));
    DETENT_CHECK(records.size() == ids.size());
  }
  /// Returns "unnest(…) as given (id, at_ms, queue, priority, lane, record)".
  std::string unnested(Statement& statement) const {
    const std::string arrays =
        statement.add_bigints(ids) + ", " + statement.add_bigints(at) + ", " +
        statement.add_bigints(queues) + ", " + statement.add_bigints(priorities) + ", " +
        statement.add_bigints(lanes) + ", " + statement.add_byte_strings(records);
    return "unnest(" + arrays + ") as given (id, at_ms, queue, priority, lane, record)";
  }
};

void add_tasks(const WriteBatch& batch, FencedStatement& statement) {
  TaskColumns added;
  TaskColumns moved;
  for (const WriteBatch::Put& put : batch.puts) {
    DETENT_CHECK(!put.from || put.from->id == put.to.place.id);
    (put.from ? moved : added).add(put.to);
  }
  if (!added.ids.empty()) {
    statement.add(
        "added",
        "insert into detent.task (shard, id, at_ms, queue, priority, lane, record) select "
        "$1, id, at_ms, queue, priority, lane::smallint, record from " +
            added.unnested(statement.parameters()));
  }
  if (!moved.ids.empty()) {
    statement.add_exact(
        "moved",
        "update detent.task set at_ms = given.at_ms, queue = given.queue, priority = "
        "given.priority, lane = given.lane::smallint, record = given.record from " +
            moved.unnested(statement.parameters()) +
            " where task.shard = $1 and task.id = given.id returning 1",
        moved.ids.size());
  }
  if (batch.erases.empty()) return;
  std::vector<std::int64_t> ids;
  for (const Place& place : batch.erases) {
    DETENT_CHECK(place.id.value != 0);
    ids.push_back(id_number(place.id));
  }
  const std::string parameter = statement.parameters().add_bigints(ids);
  statement.add_exact(
      "erased",
      "delete from detent.task using unnest(" + parameter +
          ") as given (id) where task.shard = $1 and task.id = given.id returning 1",
      ids.size());
}

/// Records that have names, in the table `table`. A record that the batch both removes and writes
/// is only written: a statement cannot change a row twice, and writing replaces the row anyway.
class NamedRecords {
 public:
  explicit NamedRecords(std::string table) : table_(std::move(table)) {}

  void put(const std::string& name, std::string value) {
    DETENT_CHECK(!name.empty() && !value.empty());
    names_.push_back(name);
    values_.push_back(std::move(value));
  }
  void put_queue(const QueueRecord& queue) {
    DETENT_CHECK(queue.number != 0);
    put(queue.queue, queue_value(queue_key(queue.queue), queue));
    partitions_.push_back(queue.settings.partitions);
  }
  void remove(const std::vector<std::string>& names) {
    const std::set<std::string> put(names_.begin(), names_.end());
    for (const std::string& name : names) {
      if (!put.contains(name)) removed_.push_back(name);
    }
  }
  void add_to(FencedStatement& statement) const {
    if (!removed_.empty()) {
      const std::string names = statement.parameters().add_texts(removed_);
      statement.add("removed_" + table_, "delete from detent." + table_ +
                                             " where shard = $1 and name = any(" + names + ")");
    }
    DETENT_CHECK(names_.size() == values_.size());
    DETENT_CHECK(partitions_.empty() || partitions_.size() == names_.size());
    if (names_.empty()) return;
    std::string columns = "name, value";
    std::string updates = "value = excluded.value";
    std::string arrays = statement.parameters().add_texts(names_) + ", " +
                         statement.parameters().add_byte_strings(values_);
    if (!partitions_.empty()) {
      columns += ", partitions";
      updates += ", partitions = excluded.partitions";
      arrays += ", " + statement.parameters().add_bigints(partitions_);
    }
    statement.add("put_" + table_, "insert into detent." + table_ + " (shard, " + columns +
                                       ") select $1, given.* from unnest(" + arrays +
                                       ") as given on conflict (shard, name) do update set " +
                                       updates);
  }

 private:
  std::string table_;
  std::vector<std::string> names_;
  std::vector<std::string> values_;
  std::vector<std::int64_t> partitions_;  // only for queues, otherwise empty
  std::vector<std::string> removed_;
};

void add_names(const WriteBatch& batch, FencedStatement& statement) {
  NamedRecords queues("queue");
  for (const QueueRecord& queue : batch.queues) queues.put_queue(queue);
  queues.remove(batch.removed_queues);
  queues.add_to(statement);
  NamedRecords schedules("schedule");
  for (const ScheduleRecord& record : batch.schedules) {
    schedules.put(record.schedule.name, encode_schedule(record));
  }
  schedules.remove(batch.removed_schedules);
  schedules.add_to(statement);
}

void add_keys(const WriteBatch& batch, FencedStatement& statement) {
  if (batch.keys.empty()) return;
  // Stands for "does not expire", and is lower than all instants. The arrays of this program have
  // no nulls.
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
  std::vector<std::string> names;
  std::vector<std::string> values;
  std::vector<std::int64_t> expiries;
  for (const KeyRecord& record : batch.keys) {
    DETENT_CHECK(!record.key.empty());
    const std::string& name = names.emplace_back(key_key(record.queue, record.key));
    values.push_back(key_value(name, record));
    expiries.push_back(record.expires_at ? milliseconds_of(*record.expires_at) : kNever);
  }
  Statement& parameters = statement.parameters();
  const std::string never = parameters.add_bigint(kNever);
  const std::string arrays = parameters.add_byte_strings(names) + ", " +
                             parameters.add_bigints(expiries) + ", " +
                             parameters.add_byte_strings(values);
  statement.add("keys",
                "insert into detent.task_key (shard, name, expires_ms, value) select $1, name, "
                "nullif(expires_ms, " +
                    never + "), value from unnest(" + arrays +
                    ") as given (name, expires_ms, value) on conflict (shard, name) do update set "
                    "expires_ms = excluded.expires_ms, value = excluded.value");
}

/// Rows whose sum is 0 stay until trim_due_counts().
void add_due_counts(const WriteBatch& batch, FencedStatement& statement) {
  std::map<DueBin, std::int64_t> changes;  // a statement can change a row only once
  for (const DueCount& change : batch.due_counts) changes[change.bin] += change.count;
  std::vector<std::int64_t> widths;
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> counts;
  for (const auto& [bin, count] : changes) {
    if (count == 0) continue;
    widths.push_back(static_cast<std::int64_t>(bin.width));
    numbers.push_back(bin.number);
    counts.push_back(count);
  }
  if (counts.empty()) return;
  Statement& parameters = statement.parameters();
  const std::string arrays = parameters.add_bigints(widths) + ", " +
                             parameters.add_bigints(numbers) + ", " +
                             parameters.add_bigints(counts);
  statement.add("counts",
                "insert into detent.due_count as sum (shard, width, number, count) select $1, "
                "width::smallint, number, count from unnest(" +
                    arrays +
                    ") as given (width, number, count) on conflict (shard, width, number) do "
                    "update set count = sum.count + excluded.count");
}

}  // namespace

std::int64_t milliseconds_of(WallTime at) noexcept { return at.time_since_epoch().count(); }

Statement batch_statement(Fence fence, const WriteBatch& batch) {
  // A claim raises the epoch, and it is the first write under this epoch.
  DETENT_CHECK(fence.epoch > 0);
  DETENT_CHECK(fence.writes > 0);
  FencedStatement statement(fence);
  TaskId last_id = batch.last_id;
  for (const WriteBatch::Put& put : batch.puts) last_id = std::max(last_id, put.to.place.id);
  std::uint32_t last_queue = 0;
  for (const QueueRecord& queue : batch.queues) last_queue = std::max(last_queue, queue.number);
  statement.raise_last(last_id, last_queue);
  add_tasks(batch, statement);
  add_names(batch, statement);
  add_keys(batch, statement);
  add_due_counts(batch, statement);
  return std::move(statement).finish();
}

}  // namespace detent
