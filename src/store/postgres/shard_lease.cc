#include "store/postgres/shard_lease.h"

#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "store/postgres/postgres_error.h"

namespace detent {

namespace {

/// A name for people: the process that owns the shard.
std::string name_of_this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"?"};
  return "process " + std::to_string(::getpid()) + " on " + host.data();
}

Statement claim_statement(const PostgresStoreOptions& options) {
  Statement claim;
  const std::string shard = claim.add_bigint(options.shard);
  const std::string owner = claim.add_bigint(static_cast<std::int64_t>(options.owner));
  claim.set_sql(
      "with free as (select shard from detent.lease where shard = " + shard +
      " and (owner = " + owner + " or " + std::string(kHasRunOut) +
      ") and (select shards from detent.cluster) = 1 for update), raised as " + raise_of_free(1) +
      ", taken as (update detent.lease set epoch = raised.epoch, owner = " + owner + ", node = " +
      claim.add_text(name_of_this_process()) + ", until = " + lease_end(claim, options.lease) +
      " from raised where lease.shard = raised.shard returning lease.shard) select raised.epoch, "
      "raised.last_id, raised.last_queue from raised, taken");
  return claim;
}

/// The query whose row refusal() takes.
constexpr const char* kRefusal =
    "select cluster.shards, lease.node, coalesce(extract(epoch from lease.until - "
    "clock_timestamp()) * 1000, 0)::bigint from detent.cluster, detent.lease where lease.shard = 0";

/// The query for leases that have not expired. in_use() takes its rows.
constexpr const char* kInUse =
    "select shard, node, (extract(epoch from until - clock_timestamp()) * 1000)::bigint from "
    "detent.lease where until > clock_timestamp()";

Error in_use(const Rows& leases) {
  return {ErrorCode::unavailable,
          "shard " + std::to_string(leases.bigint(0, 0)) + " is in use by " +
              std::string(leases.bytes(0, 1)) + "; its lease expires in " +
              std::to_string(leases.bigint(0, 2)) +
              " ms unless it is renewed. Stop all servers that use the database first",
          ""};
}

Error never_used() {
  return {ErrorCode::not_found, "no server has used this database yet", "store"};
}

Error refusal(const Rows& state) {
  const std::int64_t shards = state.bigint(0, 0);
  if (shards > 1) {
    return {ErrorCode::invalid_argument,
            "this database belongs to a cluster of " + std::to_string(shards) +
                " shards: start with --node",
            "store"};
  }
  return {ErrorCode::unavailable,
          "shard 0 is in use by another server (" + std::string(state.bytes(0, 1)) +
              "); its lease expires in " + std::to_string(state.bigint(0, 2)) +
              " ms unless it is renewed",
          ""};
}

}  // namespace

std::string lease_end(Statement& statement, std::chrono::milliseconds lease) {
  return "clock_timestamp() + " + statement.add_bigint(lease.count()) +
         " * interval '1 millisecond'";
}

std::vector<Statement> make_cluster(std::uint32_t shards) {
  std::vector<Statement> statements;
  Statement& cluster = statements.emplace_back();
  cluster.set_sql("insert into detent.cluster (shards) values (" + cluster.add_bigint(shards) +
                  ") on conflict (is_made) do nothing");
  // The inserts skip existing rows before they try them. Trying an existing row would wait for a
  // running batch.
  statements.emplace_back(
      "insert into detent.shard (shard) select number from detent.cluster, generate_series(0, "
      "shards - 1) as number where not exists (select from detent.shard where shard = number) on "
      "conflict (shard) do nothing");
  statements.emplace_back(
      "insert into detent.lease (shard) select number from detent.cluster, generate_series(0, "
      "shards - 1) as number where not exists (select from detent.lease where shard = number) on "
      "conflict (shard) do nothing");
  return statements;
}

std::string raise_of_free(int writes) {
  return "(update detent.shard set epoch = shard.epoch + 1, writes = " + std::to_string(writes) +
         " from free where shard.shard = free.shard and (select count(pg_terminate_backend("
         "session.pid)) from pg_stat_activity as session, detent.shard as held where held.shard = "
         "free.shard and session.backend_xid = held.xmax and session.wait_event = 'ClientRead' and "
         "session.usename = current_user) >= 0 "
         "returning shard.shard, shard.epoch, shard.last_id, shard.last_queue)";
}

Result<ClaimedShard> claim_shard(Connection& connection, const PostgresStoreOptions& options) {
  DETENT_CHECK(options.shard == 0);
  DETENT_CHECK(options.owner != 0);
  std::vector<Statement> statements = make_cluster(1);
  statements.push_back(claim_statement(options));
  statements.emplace_back(kRefusal);
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, connection.run(statements));
  const Rows& claimed = rows.at(rows.size() - 2);
  if (claimed.empty()) return refusal(rows.back());
  return ClaimedShard{.fence = {.shard = options.shard,
                                .epoch = static_cast<std::uint64_t>(claimed.bigint(0, 0)),
                                .writes = 1},
                      .last_id = TaskId{static_cast<std::uint64_t>(claimed.bigint(0, 1))},
                      .last_queue = static_cast<std::uint32_t>(claimed.bigint(0, 2))};
}

Result<std::uint32_t> count_idle_shards(Connection& connection) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   connection.run({Statement("select shards from detent.cluster"),
                                   Statement(std::string(kInUse) + " order by shard limit 1")}));
  if (rows.at(0).empty()) return never_used();
  if (!rows.at(1).empty()) return in_use(rows.at(1));
  return static_cast<std::uint32_t>(rows.at(0).bigint(0, 0));
}

Result<ClaimedShard> look_at_shard(Connection& connection, std::uint32_t shard) {
  Statement look;
  look.set_sql(
      "select shard.epoch, last_id, last_queue from detent.shard, detent.lease where shard.shard = "
      "lease.shard and shard.shard = " +
      look.add_bigint(shard) + " and " + std::string(kHasRunOut));
  Statement others;
  others.set_sql(std::string(kInUse) + " and shard = " + others.add_bigint(shard));
  std::vector<Statement> statements;
  statements.push_back(std::move(look));
  statements.push_back(std::move(others));
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, connection.run(statements));
  if (!rows.at(1).empty()) return in_use(rows.at(1));
  const Rows& found = rows.at(0);
  if (found.empty()) return never_used();
  return ClaimedShard{.fence = {.shard = shard,
                                .epoch = static_cast<std::uint64_t>(found.bigint(0, 0)),
                                .writes = 1},
                      .last_id = TaskId{static_cast<std::uint64_t>(found.bigint(0, 1))},
                      .last_queue = static_cast<std::uint32_t>(found.bigint(0, 2))};
}

Result<ClaimedShard> enter_shard(Connection& connection, std::uint32_t shard, std::uint64_t epoch) {
  Statement enter;
  const std::string number = enter.add_bigint(shard);
  enter.set_sql("update detent.shard set writes = 1 where shard = " + number +
                " and epoch = " + enter.add_bigint(static_cast<std::int64_t>(epoch)) +
                " and writes = 0 returning last_id, last_queue");
  Statement state;
  state.set_sql("select epoch from detent.shard where shard = " + state.add_bigint(shard));
  std::vector<Statement> statements;
  statements.push_back(std::move(enter));
  statements.push_back(std::move(state));
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, connection.run(statements));
  const Rows& entered = rows.at(0);
  const Rows& now = rows.at(1);
  if (entered.empty()) {
    const bool is_ours = !now.empty() && static_cast<std::uint64_t>(now.bigint(0, 0)) == epoch;
    return Error{ErrorCode::unavailable,
                 is_ours ? "shard " + std::to_string(shard) + " was opened before at epoch " +
                               std::to_string(epoch) + "; take the shard again"
                         : "another node owns shard " + std::to_string(shard),
                 ""};
  }
  return ClaimedShard{.fence = {.shard = shard, .epoch = epoch, .writes = 1},
                      .last_id = TaskId{static_cast<std::uint64_t>(entered.bigint(0, 0))},
                      .last_queue = static_cast<std::uint32_t>(entered.bigint(0, 1))};
}

Result<std::uint64_t> raise_epoch(Connection& connection, Fence fence) {
  DETENT_CHECK(fence.epoch > 0);
  FencedStatement raise(fence);
  raise.raise_epoch();
  TRY(connection.run_one(std::move(raise).finish()));
  return fence.epoch + 1;
}

Result<void> release_shard(Connection& connection, Fence claimed, std::uint64_t owner) {
  DETENT_CHECK(owner != 0);
  DETENT_CHECK(claimed.epoch > 0);
  Statement release;
  release.set_sql("update detent.lease set owner = null, node = '', until = null where shard = " +
                  release.add_bigint(claimed.shard) +
                  " and epoch = " + release.add_bigint(static_cast<std::int64_t>(claimed.epoch)) +
                  " and owner = " + release.add_bigint(static_cast<std::int64_t>(owner)));
  TRY(connection.run_one(std::move(release)));
  return ok();
}

LeaseKeeper::LeaseKeeper(const PostgresStoreOptions& options, Clock& clock)
    : options_(options), clock_(clock), thread_([this] { run(); }) {
  DETENT_CHECK(options.owner != 0);
  DETENT_CHECK(options.lease > std::chrono::milliseconds{0});
}

LeaseKeeper::~LeaseKeeper() {
  stop_.ring();
  thread_.join();
}

void LeaseKeeper::run() {
  Connection connection({.url = options_.url,
                         .statement_timeout = options_.lease / 2,
                         .application_name = "detent lease"});
  while (!clock_.wait(stop_, clock_.now() + options_.lease / 3)) {
    Statement renew;
    renew.set_sql("update detent.lease set until = " + lease_end(renew, options_.lease) +
                  " where shard = " + renew.add_bigint(options_.shard) + " and owner = " +
                  renew.add_bigint(static_cast<std::int64_t>(options_.owner)) + " returning epoch");
    const Result<Rows> renewed = connection.run_one(std::move(renew), CommitMode::buffered);
    if (renewed && renewed->empty()) return;  // another owner has the lease
  }
}

}  // namespace detent
