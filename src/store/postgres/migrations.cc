#include "store/postgres/migrations.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace detent {

namespace {

// The rows of `shard`, `queue` and `due_count` are updated very often, but their indexed columns
// never change. A low fill factor leaves free space in each page. So PostgreSQL can put the new
// version of a row into the same page, remove the old version there, and leave the indexes
// unchanged (HOT updates). Rows of tasks come and go, so `task` is vacuumed early.
//
// Leases have rows of their own, because a node renews the leases of all its shards in one
// statement. If the leases were in the rows that batches update, the renewal and the batches would
// wait for each other. No index contains a column that a beat changes.
constexpr std::array kTables{
    R"(create table detent.cluster (
         is_made boolean primary key default true check (is_made),
         shards bigint not null,
         secret text not null
           default replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')
       ))",
    R"(create table detent.member (
         node text collate "C" primary key,
         address text not null,
         incarnation bigint not null,
         is_leaving boolean not null,
         until timestamptz not null
       ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0,
               autovacuum_vacuum_threshold = 1000))",
    R"(create table detent.lease (
         shard bigint primary key,
         epoch bigint not null default 0,
         node text not null default '',
         owner bigint,
         until timestamptz
       ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0,
               autovacuum_vacuum_threshold = 1000))",
    R"(create table detent.shard (
         shard bigint primary key,
         epoch bigint not null default 0,
         writes bigint not null default 0,
         last_id bigint not null default 0,
         last_queue bigint not null default 0
       ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0,
               autovacuum_vacuum_threshold = 1000))",
    R"(create table detent.task (
         shard bigint not null,
         id bigint not null,
         at_ms bigint not null,
         queue bigint not null,
         priority bigint not null,
         lane smallint not null,
         record bytea not null,
         primary key (shard, id)
       ) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000,
               autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 2000))",
    "alter table detent.task alter column record set storage external",
    "create index task_due on detent.task (shard, at_ms, id) where lane = 0",
    "create index task_ready on detent.task (shard, queue, priority, at_ms, id) where lane = 1",
    "create index task_dead on detent.task (shard, queue, at_ms, id) where lane = 2",
    "create index task_ended on detent.task (shard, at_ms, id) where lane = 3",
    R"(create table detent.queue (
         shard bigint not null,
         name text collate "C" not null,
         partitions bigint not null default 1,
         value bytea not null,
         primary key (shard, name)
       ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0,
               autovacuum_vacuum_threshold = 1000))",
    // The nodes of a cluster look regularly for queues with partitions. There are few such queues.
    "create index queue_partitioned on detent.queue (name) where partitions > 1",
    R"(create table detent.schedule (
         shard bigint not null,
         name text collate "C" not null,
         value bytea not null,
         primary key (shard, name)
       ) with (fillfactor = 50))",
    R"(create table detent.task_key (
         shard bigint not null,
         name bytea not null,
         expires_ms bigint,
         value bytea not null,
         primary key (shard, name)
       ) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000,
               autovacuum_vacuum_cost_limit = 2000))",
    "create index task_key_expiry on detent.task_key (shard, expires_ms, name) "
    "where expires_ms is not null",
    R"(create table detent.due_count (
         shard bigint not null,
         width smallint not null,
         number bigint not null,
         count bigint not null,
         primary key (shard, width, number)
       ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0,
               autovacuum_vacuum_threshold = 10000))",
    R"(create table detent.quarantine (
         number bigint generated always as identity primary key,
         shard bigint not null,
         id bigint not null,
         at_ms bigint not null,
         queue bigint not null,
         priority bigint not null,
         lane smallint not null,
         record bytea not null,
         set_aside_at timestamptz not null default now()
       ))",
};

/// Creates the table of versions. If two programs do this at the same time, one of them gets an
/// error of kind `internal`. That error can be ignored.
Result<void> make_version_table(Connection& connection) {
  ASSIGN_OR_RETURN(
      const Rows there,
      connection.run_one(Statement("select 1::bigint where to_regclass('detent.migration') is not "
                                   "null")));
  if (!there.empty()) return ok();
  const Result<std::vector<Rows>> made = connection.run(
      {Statement("create schema if not exists detent"),
       Statement("create table if not exists detent.migration (version bigint primary key, "
                 "applied_at timestamptz not null default now())")});
  if (made || made.error().code == ErrorCode::internal) return ok();
  return Error(made.error());
}

constexpr const char* kVersion = "select coalesce(max(version), 0)::bigint from detent.migration";

Error no_tables() {
  return {ErrorCode::not_found, "there are no Detent tables in this database", "store"};
}

Result<void> expect_known(std::int64_t version) {
  if (version <= kSchemaVersion) return ok();
  return Error{ErrorCode::invalid_argument,
               "the tables have version " + std::to_string(version) +
                   ", this program supports version " + std::to_string(kSchemaVersion) +
                   ": start the newer version of Detent that made them, or restore a backup from "
                   "before the upgrade",
               ""};
}

/// Creates the tables, unless another program has created them in the meantime.
Result<void> make_tables(Connection& connection) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> locked,
      connection.run({Statement("begin"),
                      Statement("lock table detent.migration in access exclusive mode"),
                      Statement(kVersion)}));
  const std::int64_t version = locked.at(2).bigint(0, 0);
  TRY(expect_known(version));
  std::vector<Statement> statements;
  if (version == 0) {
    for (const char* const sql : kTables) statements.emplace_back(sql);
    Statement done;
    done.set_sql("insert into detent.migration (version) values (" +
                 done.add_bigint(kSchemaVersion) + ")");
    statements.push_back(std::move(done));
  }
  statements.emplace_back("commit");
  TRY(connection.run(statements));
  return ok();
}

}  // namespace

Result<void> expect_migrated(Connection& connection) {
  ASSIGN_OR_RETURN(
      const Rows there,
      connection.run_one(Statement("select 1::bigint where to_regclass('detent.migration') is not "
                                   "null")));
  if (there.empty()) return no_tables();
  ASSIGN_OR_RETURN(const Rows version, connection.run_one(Statement(kVersion)));
  if (version.bigint(0, 0) == 0) return no_tables();
  return expect_known(version.bigint(0, 0));
}

Result<void> migrate(Connection& connection) {
  TRY(make_version_table(connection));
  ASSIGN_OR_RETURN(const Rows version, connection.run_one(Statement(kVersion)));
  if (version.bigint(0, 0) == kSchemaVersion) return ok();
  TRY(expect_known(version.bigint(0, 0)));
  Result<void> made = make_tables(connection);
  if (!made) connection.close();  // ends the transaction and releases the lock
  return made;
}

}  // namespace detent
