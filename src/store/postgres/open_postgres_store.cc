#include "store/postgres/open_postgres_store.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "detent/check.h"
#include "store/meta_format.h"
#include "store/postgres/batch_statement.h"
#include "store/postgres/migrations.h"
#include "store/schedule_format.h"
#include "store/store_error.h"

namespace detent {

namespace {

// Sums of 0 are removed after this number of writes that changed sums. About one sum per minute
// becomes 0.
constexpr std::uint64_t kWritesToTrim = 10'000;

/// A statement on the rows of a shard. `rest` follows "where shard = …".
Statement of_shard(Fence fence, const std::string& select, const std::string& rest) {
  Statement statement;
  const std::string is_in = in_shard(statement, fence);
  statement.set_sql(select + " where " + is_in + rest);
  return statement;
}

std::string session_name(const PostgresStoreOptions& options) {
  const std::string shard = "detent shard " + std::to_string(options.shard);
  return options.node.empty() ? shard : shard + " of " + options.node;
}

std::unique_ptr<Connection> new_connection(const PostgresStoreOptions& options) {
  return std::make_unique<Connection>(
      ConnectionOptions{.url = options.url,
                        .statement_timeout = options.statement_timeout,
                        .idle_timeout = options.lease / 2,
                        .application_name = session_name(options)});
}

}  // namespace

OpenPostgresStore::OpenPostgresStore(const PostgresStoreOptions& options,
                                     std::unique_ptr<Connection> connection,
                                     const ClaimedShard& claimed)
    : options_(options),
      claimed_(claimed.fence),
      connection_(std::move(connection)),
      fence_(claimed.fence),
      last_id_(claimed.last_id),
      last_queue_number_(claimed.last_queue) {}

Result<std::unique_ptr<Store>> OpenPostgresStore::open(const PostgresStoreOptions& options,
                                                       Clock& clock) {
  const std::string opening = "open store " + shown_postgres_url(options.url);
  std::unique_ptr<Connection> connection = new_connection(options);
  if (Result<void> migrated = migrate(*connection); !migrated) {
    return with_context(opening, std::move(migrated).error());
  }
  const Result<ClaimedShard> claimed = options.epoch
                                           ? enter_shard(*connection, options.shard, *options.epoch)
                                           : claim_shard(*connection, options);
  if (!claimed) return with_context(opening, claimed.error());
  std::unique_ptr<OpenPostgresStore> store(
      new OpenPostgresStore(options, std::move(connection), *claimed));
  if (!options.epoch) store->lease_.emplace(options, clock);
  if (Result<void> trimmed = store->trim_due_counts(); !trimmed) {
    return with_context(opening, std::move(trimmed).error());
  }
  return std::unique_ptr<Store>(std::move(store));
}

Result<std::uint32_t> OpenPostgresStore::shards_to_read(const PostgresStoreOptions& options) {
  const std::unique_ptr<Connection> connection = new_connection(options);
  Result<std::uint32_t> shards = std::uint32_t{0};
  if (Result<void> known = expect_migrated(*connection); !known) {
    shards = std::move(known).error();
  } else {
    shards = count_idle_shards(*connection);
  }
  if (shards) return shards;
  return with_context("open store " + shown_postgres_url(options.url) + " to read",
                      std::move(shards).error());
}

Result<std::unique_ptr<Store>> OpenPostgresStore::open_to_read(
    const PostgresStoreOptions& options) {
  const std::string opening = "open store " + shown_postgres_url(options.url) + " to read";
  std::unique_ptr<Connection> connection = new_connection(options);
  if (Result<void> known = expect_migrated(*connection); !known) {
    return with_context(opening, std::move(known).error());
  }
  const Result<ClaimedShard> shard = look_at_shard(*connection, options.shard);
  if (!shard) return with_context(opening, shard.error());
  std::unique_ptr<OpenPostgresStore> store(
      new OpenPostgresStore(options, std::move(connection), *shard));
  store->write_failed_ = true;
  return std::unique_ptr<Store>(std::move(store));
}

OpenPostgresStore::~OpenPostgresStore() {
  // If the lease is not released here, it expires. This is not worth a new connection.
  if (lease_ && connection_->is_open()) {
    static_cast<void>(release_shard(*connection_, claimed_, options_.owner));
  }
}

Result<Rows> OpenPostgresStore::change(Statement statement, Durability durability) {
  if (write_failed_) return earlier_write_failed();
  const CommitMode mode =
      durability == Durability::synced ? CommitMode::synced : CommitMode::buffered;
  Result<Rows> changed = connection_->run_one(std::move(statement), mode);
  if (changed) {
    DETENT_CHECK(fence_.writes > 0);
    ++fence_.writes;
    return changed;
  }
  write_failed_ = true;
  return with_context("write store", std::move(changed).error());
}

Result<Rows> OpenPostgresStore::select(Statement statement, std::string_view reading) {
  Result<Rows> rows = connection_->run_one(std::move(statement));
  if (rows) return rows;
  return with_context(reading, std::move(rows).error());
}

Result<void> OpenPostgresStore::write(const WriteBatch& batch, Durability durability) {
  if (write_failed_) return earlier_write_failed();
  TRY(change(batch_statement(fence_, batch), durability));
  last_id_ = std::max(last_id_, batch.last_id);
  for (const WriteBatch::Put& put : batch.puts) last_id_ = std::max(last_id_, put.to.place.id);
  for (const KeyRecord& key : batch.keys) {
    if (!key.expires_at) continue;
    keys_trimmed_to_ = std::min(keys_trimmed_to_, milliseconds_of(*key.expires_at));
  }
  for (const QueueRecord& queue : batch.queues) {
    last_queue_number_ = std::max(last_queue_number_, queue.number);
  }
  if (batch.due_counts.empty() || ++counted_writes_ < kWritesToTrim) return ok();
  return trim_due_counts();
}

Result<void> OpenPostgresStore::trim_due_counts() {
  FencedStatement statement(fence_);
  statement.add("trimmed", "delete from detent.due_count where shard = $1 and count = 0");
  TRY(change(std::move(statement).finish(), Durability::buffered));
  counted_writes_ = 0;
  return ok();
}

Result<TaskPage> OpenPostgresStore::read(Place after, Place until, std::size_t limit) {
  return tasks().read(after, until, limit);
}

Result<TaskPage> OpenPostgresStore::read_by_id(TaskId after, std::size_t limit) {
  return tasks().read_by_id(after, limit);
}

Result<std::vector<Result<Task>>> OpenPostgresStore::read_at(std::span<const Place> places) {
  return tasks().read_at(places);
}

Result<std::optional<StoredTask>> OpenPostgresStore::find(TaskId id) { return tasks().find(id); }

Result<std::vector<StoredTask>> OpenPostgresStore::find_all(std::span<const TaskId> ids) {
  return tasks().find_all(ids);
}

Result<void> OpenPostgresStore::quarantine(std::span<const Place> places) {
  std::vector<std::int64_t> ids, at, queues, priorities, lanes;
  for (const Place& place : places) {
    ids.push_back(id_number(place.id));
    at.push_back(milliseconds_of(place.at));
    queues.push_back(place.queue);
    priorities.push_back(place.priority);
    lanes.push_back(static_cast<std::int64_t>(place.lane));
    DETENT_CHECK(lanes.size() == ids.size());
  }
  FencedStatement statement(fence_);
  Statement& parameters = statement.parameters();
  const std::string id_array = parameters.add_bigints(ids);
  const std::string arrays =
      id_array + ", " + parameters.add_bigints(at) + ", " + parameters.add_bigints(queues) + ", " +
      parameters.add_bigints(priorities) + ", " + parameters.add_bigints(lanes);
  const std::string columns = "shard, id, at_ms, queue, priority, lane, record";
  statement.add("gone", "delete from detent.task where shard = $1 and id = any(" + id_array +
                            ") and (id, at_ms, queue, priority, lane) in (select * from unnest(" +
                            arrays + ")) returning " + columns);
  statement.add("kept",
                "insert into detent.quarantine (" + columns + ") select " + columns + " from gone");
  TRY(change(std::move(statement).finish(), Durability::synced));
  return ok();
}

Result<std::optional<KeyRecord>> OpenPostgresStore::find_key(std::uint32_t queue,
                                                             std::string_view key) {
  const std::string name = key_key(queue, key);
  Statement statement;
  const std::string is_in = in_shard(statement, fence_);
  statement.set_sql("select value from detent.task_key where " + is_in +
                    " and name = " + statement.add_bytes(name));
  statement.keep_plan();
  ASSIGN_OR_RETURN(const Rows rows, select(std::move(statement), "read key"));
  if (rows.empty()) return std::optional<KeyRecord>();
  ASSIGN_OR_RETURN(KeyRecord record, parse_key_value(name, rows.bytes(0, 0)));
  return std::optional<KeyRecord>(std::move(record));
}

Result<std::vector<KeyRecord>> OpenPostgresStore::find_keys(std::uint32_t queue,
                                                            std::span<const std::string> keys) {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const std::string& key : keys) names.push_back(key_key(queue, key));
  Statement statement;
  const std::string is_in = in_shard(statement, fence_);
  statement.set_sql("select name, value from detent.task_key where " + is_in + " and name = any(" +
                    statement.add_byte_strings(names) + ")");
  ASSIGN_OR_RETURN(const Rows rows, select(std::move(statement), "read keys"));
  std::vector<KeyRecord> records;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (Result<KeyRecord> record = parse_key_value(rows.bytes(row, 0), rows.bytes(row, 1))) {
      records.push_back(*std::move(record));
    }
  }
  return records;
}

Result<KeyPage> OpenPostgresStore::read_keys(std::uint32_t queue, std::string_view after,
                                             std::size_t limit) {
  DETENT_CHECK(limit > 0);
  Statement statement;
  const std::string is_in = in_shard(statement, fence_);
  statement.set_sql("select name, value from detent.task_key where " + is_in + " and name > " +
                    statement.add_bytes(key_key(queue, after)) + " and name < " +
                    statement.add_bytes(key_key(queue + 1, "")) + " order by name limit " +
                    statement.add_bigint(static_cast<std::int64_t>(
                        std::min<std::size_t>(limit, std::numeric_limits<int>::max()))));
  ASSIGN_OR_RETURN(const Rows rows, select(std::move(statement), "read keys"));
  KeyPage page;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    add_key_to_page(page, limit, rows.bytes(row, 0), rows.bytes(row, 1));
  }
  return page;
}

Result<std::size_t> OpenPostgresStore::trim_keys(WallTime now, std::size_t limit) {
  FencedStatement statement(fence_);
  Statement& parameters = statement.parameters();
  const std::string until = parameters.add_bigint(milliseconds_of(now));
  const std::string most = parameters.add_bigint(
      static_cast<std::int64_t>(std::min<std::size_t>(limit, std::numeric_limits<int>::max())));
  // The index keeps the entries of removed keys for a while. So the search does not begin at the
  // front of the index.
  const std::string from = parameters.add_bigint(keys_trimmed_to_);
  statement.add(
      "expired",
      "select name, expires_ms from detent.task_key where shard = $1 and expires_ms >= " + from +
          " and expires_ms <= " + until + " order by expires_ms, name limit " + most);
  statement.add("trimmed",
                "delete from detent.task_key using expired where task_key.shard = $1 and "
                "task_key.name = expired.name returning 1");
  ASSIGN_OR_RETURN(
      const Rows rows,
      change(
          std::move(statement).finish(
              "(select count(*) from trimmed), coalesce((select max(expires_ms) from expired), " +
              from + ")"),
          Durability::buffered));
  keys_trimmed_to_ = rows.bigint(0, 2);
  return static_cast<std::size_t>(rows.bigint(0, 1));
}

Result<std::vector<KeyRecord>> OpenPostgresStore::wrong_expiries(
    std::span<const KeyRecord> records) {
  std::vector<std::string> names;
  names.reserve(records.size());
  for (const KeyRecord& record : records) names.push_back(key_key(record.queue, record.key));
  Statement statement;
  const std::string is_in = in_shard(statement, fence_);
  statement.set_sql("select name, expires_ms from detent.task_key where " + is_in +
                    " and name = any(" + statement.add_byte_strings(names) + ")");
  ASSIGN_OR_RETURN(const Rows rows, select(std::move(statement), "read expiry of keys"));
  std::map<std::string_view, std::optional<std::int64_t>> expiries;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!rows.is_null(row, 1)) expiries[rows.bytes(row, 0)] = rows.bigint(row, 1);
  }
  std::vector<KeyRecord> wrong;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::optional<WallTime>& at = records[i].expires_at;
    const auto told = at ? std::optional(milliseconds_of(*at)) : std::nullopt;
    if (expiries[names[i]] != told) wrong.push_back(records[i]);
  }
  return wrong;
}

Result<std::vector<Result<ScheduleRecord>>> OpenPostgresStore::read_schedules() {
  ASSIGN_OR_RETURN(
      const Rows rows,
      select(of_shard(fence_, "select name, value from detent.schedule", " order by name"),
             "read schedules"));
  std::vector<Result<ScheduleRecord>> all;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    all.push_back(decode_schedule(rows.bytes(row, 0), rows.bytes(row, 1)));
  }
  return all;
}

Result<std::vector<QueueRecord>> OpenPostgresStore::queues() {
  ASSIGN_OR_RETURN(const Rows rows, select(of_shard(fence_, "select name, value from detent.queue",
                                                    " order by name"),
                                           "read queues"));
  std::vector<QueueRecord> all;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    ASSIGN_OR_RETURN(QueueRecord record,
                     parse_queue(queue_key(rows.bytes(row, 0)), rows.bytes(row, 1)));
    all.push_back(std::move(record));
  }
  return all;
}

Result<std::vector<DueCount>> OpenPostgresStore::due_counts() {
  ASSIGN_OR_RETURN(
      const Rows rows,
      select(of_shard(fence_, "select width::bigint, number, count from detent.due_count",
                      " and count <> 0 order by width, number"),
             "read due counts"));
  std::vector<DueCount> all;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    all.push_back({.bin = {.width = static_cast<DueBin::Width>(rows.bigint(row, 0)),
                           .number = rows.bigint(row, 1)},
                   .count = rows.bigint(row, 2)});
  }
  return all;
}

Result<std::uint64_t> OpenPostgresStore::quarantined() {
  ASSIGN_OR_RETURN(
      const Rows rows,
      select(of_shard(fence_, "select count(*) from detent.quarantine", ""), "count quarantine"));
  return static_cast<std::uint64_t>(rows.bigint(0, 0));
}

Result<std::uint64_t> OpenPostgresStore::begin_epoch() {
  if (write_failed_) return earlier_write_failed();
  // Opening the store has already raised the epoch durably, and begin_epoch() has not returned it
  // yet.
  if (std::exchange(claim_is_unused_, false)) {
    DETENT_CHECK(fence_.epoch == claimed_.epoch && fence_.epoch > 0);
    TRY(trim_due_counts());  // this write fails if the epoch is no longer the shard's
    return fence_.epoch;
  }
  Result<std::uint64_t> epoch = raise_epoch(*connection_, fence_);
  if (!epoch) {
    write_failed_ = true;
    return with_context("begin epoch", std::move(epoch).error());
  }
  DETENT_CHECK(*epoch > fence_.epoch);
  fence_ = {.shard = options_.shard, .epoch = *epoch, .writes = 1};
  return epoch;
}

/// A hash over the shard and the random secret of the database. All copies of the database have the
/// same secret. The secret itself must not be shown.
Result<std::string> OpenPostgresStore::identity() {
  Statement statement;
  statement.set_sql("select encode(sha256(convert_to('shard ' || " +
                    statement.add_bigint(options_.shard) +
                    " || ' ' || secret, 'UTF8')), 'hex') from detent.cluster");
  ASSIGN_OR_RETURN(const Rows rows, select(std::move(statement), "read identity"));
  return std::string(rows.bytes(0, 0));
}

}  // namespace detent
