#include "store/postgres/shard_lease.h"

#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "store/postgres/postgres_error.h"

namespace detent {

namespace {

/// For people: which process has it.
std::string name_of_this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"?"};
  return "process " + std::to_string(::getpid()) + " on " + host.data();
}

std::string lease_end(Statement& statement, std::chrono::milliseconds lease) {
  return "clock_timestamp() + " + statement.add_bigint(lease.count()) +
         " * interval '1 millisecond'";
}

Statement claim_statement(const PostgresStoreOptions& options) {
  Statement claim;
  const std::string shard = claim.add_bigint(options.shard);
  const std::string owner = claim.add_bigint(static_cast<std::int64_t>(options.owner));
  claim.set_sql("update detent.shard set epoch = epoch + 1, owner = " + owner +
                ", owner_name = " + claim.add_text(name_of_this_process()) +
                ", lease_until = " + lease_end(claim, options.lease) + " where shard = " + shard +
                " and (owner is null or owner = " + owner +
                " or lease_until < clock_timestamp()) returning epoch, last_id, last_queue");
  return claim;
}

Error in_use(const PostgresStoreOptions& options, const Rows& state) {
  return {ErrorCode::unavailable,
          "shard " + std::to_string(options.shard) + " is in use by another server (" +
              std::string(state.bytes(0, 0)) + "); its lease runs out in " +
              std::to_string(state.bigint(0, 1)) + " ms, unless it is renewed",
          ""};
}

}  // namespace

Result<ClaimedShard> claim_shard(Connection& connection, const PostgresStoreOptions& options) {
  Statement insert;
  insert.set_sql("insert into detent.shard (shard) values (" + insert.add_bigint(options.shard) +
                 ") on conflict do nothing");
  Statement state;
  state.set_sql(
      "select coalesce(owner_name, ''), coalesce(extract(epoch from lease_until - "
      "clock_timestamp()) * 1000, 0)::bigint from detent.shard where shard = " +
      state.add_bigint(options.shard));
  std::vector<Statement> statements;
  statements.push_back(std::move(insert));
  statements.push_back(claim_statement(options));
  statements.push_back(std::move(state));
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, connection.run(statements));
  const Rows& claimed = rows.at(1);
  if (claimed.empty()) return in_use(options, rows.at(2));
  return ClaimedShard{
      .fence = {.shard = options.shard, .epoch = static_cast<std::uint64_t>(claimed.bigint(0, 0))},
      .last_id = TaskId{static_cast<std::uint64_t>(claimed.bigint(0, 1))},
      .last_queue = static_cast<std::uint32_t>(claimed.bigint(0, 2))};
}

Result<std::uint64_t> raise_epoch(Connection& connection, Fence fence) {
  Statement raise;
  raise.set_sql(
      "update detent.shard set epoch = epoch + 1 where shard = " + raise.add_bigint(fence.shard) +
      " and epoch = " + raise.add_bigint(static_cast<std::int64_t>(fence.epoch)) +
      " returning epoch");
  ASSIGN_OR_RETURN(const Rows rows, connection.run_one(std::move(raise)));
  if (rows.empty()) return fenced_error();
  return static_cast<std::uint64_t>(rows.bigint(0, 0));
}

Result<void> release_shard(Connection& connection, Fence fence, std::uint64_t owner) {
  Statement release;
  release.set_sql(
      "update detent.shard set owner = null, owner_name = null, lease_until = null "
      "where shard = " +
      release.add_bigint(fence.shard) +
      " and epoch = " + release.add_bigint(static_cast<std::int64_t>(fence.epoch)) +
      " and owner = " + release.add_bigint(static_cast<std::int64_t>(owner)));
  TRY(connection.run_one(std::move(release)));
  return ok();
}

LeaseKeeper::LeaseKeeper(const PostgresStoreOptions& options, Clock& clock)
    : options_(options), clock_(clock), thread_([this] { run(); }) {}

LeaseKeeper::~LeaseKeeper() {
  stop_.ring();
  thread_.join();
}

void LeaseKeeper::run() {
  Connection connection({.url = options_.url, .statement_timeout = options_.lease / 2});
  while (!clock_.wait(stop_, clock_.now() + options_.lease / 3)) {
    Statement renew;
    renew.set_sql("update detent.shard set lease_until = " + lease_end(renew, options_.lease) +
                  " where shard = " + renew.add_bigint(options_.shard) + " and owner = " +
                  renew.add_bigint(static_cast<std::int64_t>(options_.owner)) + " returning epoch");
    const Result<Rows> renewed = connection.run_one(std::move(renew), CommitMode::buffered);
    if (renewed && renewed->empty()) return;  // another has it
  }
}

}  // namespace detent
