#include "store/postgres/postgres_lease_table.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "store/postgres/connection.h"
#include "store/postgres/migrations.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/shard_lease.h"
#include "store/store_error.h"

namespace detent {

namespace {

constexpr ShardNumber kShardsOfNew = 16;
constexpr std::string_view kNextAttempt = "; the next attempt to connect begins soon";

// The kinds of rows in the result of a beat.
constexpr std::int64_t kMember = 0;
constexpr std::int64_t kHeld = 1;
constexpr std::int64_t kFree = 2;
constexpr std::int64_t kNameInUse = 3;
constexpr std::int64_t kMissing = 4;

std::chrono::milliseconds first_pause(const PostgresLeaseTableOptions& options) {
  return std::max(options.lease_length / 64, std::chrono::milliseconds{1});
}

ConnectionOptions connection_options(const PostgresLeaseTableOptions& options) {
  return {.url = options.url,
          .statement_timeout = std::min(options.statement_timeout, options.lease_length / 2),
          .idle_timeout = options.lease_length / 2,
          .application_name = options.node.empty() ? "detent node" : "detent node " + options.node};
}

ShardNumber shard_in(const Rows& rows, std::size_t row, int column) {
  return static_cast<ShardNumber>(rows.bigint(row, column));
}

std::uint64_t epoch_in(const Rows& rows, std::size_t row, int column) {
  return static_cast<std::uint64_t>(rows.bigint(row, column));
}

/// All parts of the statement run on one snapshot, so the SELECTs do not see the changes of `seen`
/// and `renewed`. The row of a killed member stays for kMissingMemberKept, so that others can see
/// that it is missing. A member that leaves removes its own row. `skip locked` skips rows that
/// another beat is removing, so that beats never wait for each other in a circle.
Statement beat_statement(const Member& me, std::span<const ShardLease> held,
                         std::chrono::milliseconds lease) {
  std::vector<std::int64_t> shards;
  std::vector<std::int64_t> epochs;
  for (const ShardLease& one : held) {
    DETENT_CHECK(one.epoch > 0);
    shards.push_back(one.shard);
    epochs.push_back(static_cast<std::int64_t>(one.epoch));
  }
  Statement beat;
  const std::string node = beat.add_text(me.node);
  const std::string until = lease_end(beat, lease);
  const std::string run_out(kHasRunOut);
  beat.set_sql(
      "with seen as (insert into detent.member (node, address, incarnation, is_leaving, until) "
      "values (" +
      node + ", " + beat.add_text(me.address) + ", " +
      beat.add_bigint(std::bit_cast<std::int64_t>(me.incarnation)) + ", " +
      (me.presence == Presence::leaving ? "true" : "false") + ", " + until +
      ") on conflict (node) do update set address = excluded.address, incarnation = "
      "excluded.incarnation, is_leaving = excluded.is_leaving, until = excluded.until where "
      "member.address = excluded.address or member.until is null or member.until < "
      "clock_timestamp() returning node), "
      "dead as (select node from detent.member where until <= clock_timestamp() - "
      "make_interval(hours => " +
      std::to_string(kMissingMemberKept.count()) + ") and node <> " + node +
      " for update skip locked), buried as (delete from detent.member using dead where member.node "
      "= dead.node), renewed as (update detent.lease set until = " +
      until + " from unnest(" + beat.add_bigints(shards) + ", " + beat.add_bigints(epochs) +
      ") as held (shard, epoch) where lease.shard = held.shard and lease.epoch = held.epoch "
      "and exists (select from seen) "
      "returning lease.shard, lease.epoch) "
      "select 0::bigint, node, address, is_leaving::int::bigint, incarnation from detent.member "
      "where not " +
      run_out + " and node <> " + node +
      " union all select 1, '', '', shard, epoch from renewed"
      " union all select 2, '', '', shard, 0 from detent.lease where " +
      run_out +
      " and shard not in (select shard from renewed) union all select 3, '', address, 0, 0 from "
      "detent.member where node = " +
      node +
      " and not exists (select from seen) union all select 4, node, address, (extract(epoch from "
      "clock_timestamp() - until) * 1000)::bigint, 0 from detent.member where " +
      run_out + " and node <> " + node + " order by 1, 4");
  return beat;
}

Result<ClusterView> view_of(const Rows& rows, const Member& me) {
  ClusterView view{.members = {me}, .free = {}, .held = {}};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    switch (rows.bigint(row, 0)) {
      case kMember:
        view.members.push_back(
            {.node = std::string(rows.bytes(row, 1)),
             .address = std::string(rows.bytes(row, 2)),
             .incarnation = std::bit_cast<std::uint64_t>(rows.bigint(row, 4)),
             .presence = rows.bigint(row, 3) == 1 ? Presence::leaving : Presence::staying});
        break;
      case kHeld:
        view.held.push_back({shard_in(rows, row, 3), epoch_in(rows, row, 4)});
        break;
      case kFree:
        view.free.push_back(shard_in(rows, row, 3));
        break;
      case kMissing:
        view.missing.push_back({.node = std::string(rows.bytes(row, 1)),
                                .address = std::string(rows.bytes(row, 2)),
                                .missing_for = std::chrono::milliseconds{rows.bigint(row, 3)}});
        break;
      case kNameInUse:
        return node_name_in_use(me.node, std::string(rows.bytes(row, 2)));
      default:
        DETENT_CHECK(false);
    }
  }
  std::ranges::sort(view.members, {}, &Member::node);
  std::ranges::sort(view.missing, {}, &MissingMember::node);
  return view;
}

class OpenLeaseTable final : public PostgresLeaseTable {
 public:
  OpenLeaseTable(PostgresLeaseTableOptions options, const Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        connection_(connection_options(options_)),
        pause_(first_pause(options_)) {}
  Result<void> prepare();

  ShardNumber shards() const noexcept override { return shards_; }
  std::chrono::milliseconds lease_length() const noexcept override { return options_.lease_length; }
  const std::string& secret() const noexcept override { return secret_; }

  Result<ClusterView> beat(const Member& me, std::span<const ShardLease> held) override;
  Result<std::optional<ShardLease>> take(ShardNumber shard, const std::string& node) override;
  Result<void> give_up(const ShardLease& lease) override;
  Result<void> leave(const Member& me) override;
  Result<std::vector<ShardOwner>> owners() override;
  Result<std::vector<QueuePartitions>> partitioned() override;

 private:
  Result<Rows> run(Statement statement, std::string_view doing);

  const PostgresLeaseTableOptions options_;
  const Clock& clock_;
  Connection connection_;
  ShardNumber shards_ = 0;
  std::string secret_;
  std::chrono::milliseconds pause_;  // before the next attempt, if this attempt fails
  MonotonicTime try_at_{};           // earliest next attempt while there is no connection
  std::string broken_by_;            // why there is no connection
};

Result<void> OpenLeaseTable::prepare() {
  const ShardNumber wanted = options_.shards.value_or(kShardsOfNew);
  if (wanted == 0 || wanted > kMostShards) {
    return Error{ErrorCode::invalid_argument,
                 "the number of shards must be 1 to " + std::to_string(kMostShards) + ", got " +
                     std::to_string(wanted),
                 "shards"};
  }
  TRY(migrate(connection_));
  std::vector<Statement> statements = make_cluster(wanted);
  statements.emplace_back("select shards, secret from detent.cluster");
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, connection_.run(statements));
  const ShardNumber there = shard_in(rows.back(), 0, 0);
  if (options_.shards && *options_.shards != there) {
    return Error{ErrorCode::invalid_argument,
                 "the cluster of this database has " + std::to_string(there) + " shards, not " +
                     std::to_string(*options_.shards) + "; the number cannot be changed",
                 "shards"};
  }
  shards_ = there;
  secret_ = rows.back().bytes(0, 1);
  return ok();
}

Result<Rows> OpenLeaseTable::run(Statement statement, std::string_view doing) {
  if (!connection_.is_open() && clock_.now() < try_at_) {
    return with_context(doing,
                        {ErrorCode::unavailable, broken_by_ + std::string(kNextAttempt), ""});
  }
  Result<Rows> rows = connection_.run_one(std::move(statement));
  if (rows) {
    pause_ = first_pause(options_);
    return rows;
  }
  if (!connection_.is_open()) {
    try_at_ = clock_.now() + pause_;
    pause_ = std::min(2 * pause_, 8 * first_pause(options_));
    broken_by_ = rows.error().message;
  }
  return with_context(doing, std::move(rows).error());
}

Result<ClusterView> OpenLeaseTable::beat(const Member& me, std::span<const ShardLease> held) {
  DETENT_CHECK(held.size() <= shards_);
  ASSIGN_OR_RETURN(const Rows rows, run(beat_statement(me, held, options_.lease_length), "beat"));
  return view_of(rows, me);
}

/// This write is synced, as all writes of this class. If a crash of the database took back an
/// epoch, the epoch would be given twice.
Result<std::optional<ShardLease>> OpenLeaseTable::take(ShardNumber shard, const std::string& node) {
  DETENT_CHECK(shard < shards_);
  Statement take;
  const std::string number = take.add_bigint(shard);
  take.set_sql("with free as (select shard from detent.lease where shard = " + number + " and " +
               std::string(kHasRunOut) + " for update), raised as " + raise_of_free(0) +
               ", taken as (update detent.lease set epoch = raised.epoch, owner = null, node = " +
               take.add_text(node) + ", until = " + lease_end(take, options_.lease_length) +
               " from raised where lease.shard = raised.shard returning lease.epoch) select epoch "
               "from taken");
  ASSIGN_OR_RETURN(const Rows rows, run(std::move(take), "take shard " + std::to_string(shard)));
  if (rows.empty()) return std::optional<ShardLease>();
  return std::optional(ShardLease{.shard = shard, .epoch = epoch_in(rows, 0, 0)});
}

Result<void> OpenLeaseTable::give_up(const ShardLease& lease) {
  DETENT_CHECK(lease.shard < shards_);
  Statement give_up;
  give_up.set_sql(
      "update detent.lease set until = null where shard = " + give_up.add_bigint(lease.shard) +
      " and epoch = " + give_up.add_bigint(static_cast<std::int64_t>(lease.epoch)));
  TRY(run(std::move(give_up), "give up shard " + std::to_string(lease.shard)));
  return ok();
}

Result<void> OpenLeaseTable::leave(const Member& me) {
  Statement leave;
  leave.set_sql("delete from detent.member where node = " + leave.add_text(me.node) +
                " and address = " + leave.add_text(me.address) + " and incarnation = " +
                leave.add_bigint(std::bit_cast<std::int64_t>(me.incarnation)));
  TRY(run(std::move(leave), "leave the cluster"));
  return ok();
}

Result<std::vector<ShardOwner>> OpenLeaseTable::owners() {
  Statement select("select shard, node, epoch, " + std::string(kHasRunOut) +
                   "::int::bigint from detent.lease order by shard");
  ASSIGN_OR_RETURN(const Rows rows, run(std::move(select), "read the owners"));
  std::vector<ShardOwner> owners;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    owners.push_back({.shard = shard_in(rows, row, 0),
                      .node = std::string(rows.bytes(row, 1)),
                      .epoch = epoch_in(rows, row, 2),
                      .has_run_out = rows.bigint(row, 3) == 1});
  }
  return owners;
}

Result<std::vector<QueuePartitions>> OpenLeaseTable::partitioned() {
  Statement select(
      "select shard, name, partitions from detent.queue where partitions > 1 order by shard, name");
  ASSIGN_OR_RETURN(const Rows rows, run(std::move(select), "read the partitioned queues"));
  std::vector<QueuePartitions> queues;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    queues.push_back({.shard = shard_in(rows, row, 0),
                      .queue = std::string(rows.bytes(row, 1)),
                      .partitions = static_cast<std::uint32_t>(rows.bigint(row, 2))});
  }
  return queues;
}

}  // namespace

Result<std::unique_ptr<PostgresLeaseTable>> PostgresLeaseTable::open(
    PostgresLeaseTableOptions options, const Clock& clock) {
  const std::string opening = "open the cluster in " + shown_postgres_url(options.url);
  auto table = std::make_unique<OpenLeaseTable>(std::move(options), clock);
  if (Result<void> prepared = table->prepare(); !prepared) {
    return with_context(opening, std::move(prepared).error());
  }
  return std::unique_ptr<PostgresLeaseTable>(std::move(table));
}

}  // namespace detent
