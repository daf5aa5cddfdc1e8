#include "store/testing/memory_lease_table.h"

#include <utility>

#include "detent/check.h"
#include "store/store_error.h"

namespace detent {

MemoryLeaseTable::MemoryLeaseTable(const Clock& clock, ShardNumber shards,
                                   std::chrono::milliseconds lease_length)
    : clock_(clock), lease_length_(lease_length), rows_(shards) {
  DETENT_CHECK(shards > 0);
}

Result<void> MemoryLeaseTable::count_call() {
  ++calls_;
  if (is_unreachable_) return Error{ErrorCode::unavailable, "the lease table is unreachable", ""};
  return ok();
}

Result<ClusterView> MemoryLeaseTable::beat(const Member& me, std::span<const ShardLease> held) {
  TRY(count_call());
  const MonotonicTime now = clock_.now();
  const MonotonicTime until = now + lease_length_;
  const auto known = members_.find(me.node);
  const bool is_taken = known != members_.end() && known->second.until > now;
  if (is_taken && known->second.member.address != me.address)
    return node_name_in_use(me.node, known->second.member.address);
  members_.insert_or_assign(me.node, Seen{me, until});
  std::erase_if(members_, [now](const auto& member) {
    return member.second.until <= now - kMissingMemberKept;
  });
  ClusterView view;
  for (const ShardLease& lease : held) {
    Row& row = rows_.at(lease.shard);
    if (row.epoch != lease.epoch) continue;
    row.until = until;
    view.held.push_back(lease);
  }
  for (const auto& [node, seen] : members_) {
    if (seen.until > now) {
      view.members.push_back(seen.member);
    } else {
      view.missing.push_back({node, seen.member.address,
                              std::chrono::floor<std::chrono::milliseconds>(now - seen.until)});
    }
  }
  for (ShardNumber shard = 0; shard < shards(); ++shard) {
    if (has_run_out(rows_[shard])) view.free.push_back(shard);
  }
  return view;
}

Result<std::optional<ShardLease>> MemoryLeaseTable::take(ShardNumber shard,
                                                         const std::string& node) {
  TRY(count_call());
  Row& row = rows_.at(shard);
  if (!has_run_out(row)) return std::optional<ShardLease>();
  row = {.owner = node, .epoch = row.epoch + 1, .until = clock_.now() + lease_length_};
  return std::optional(ShardLease{.shard = shard, .epoch = row.epoch});
}

Result<void> MemoryLeaseTable::give_up(const ShardLease& lease) {
  TRY(count_call());
  Row& row = rows_.at(lease.shard);
  if (row.epoch == lease.epoch) row.until = MonotonicTime::min();
  return ok();
}

Result<void> MemoryLeaseTable::leave(const Member& me) {
  TRY(count_call());
  const auto known = members_.find(me.node);
  const bool is_me = known != members_.end() && known->second.member.address == me.address &&
                     known->second.member.incarnation == me.incarnation;
  if (is_me) members_.erase(known);
  return ok();
}

Result<std::vector<ShardOwner>> MemoryLeaseTable::owners() {
  TRY(count_call());
  std::vector<ShardOwner> owners;
  owners.reserve(rows_.size());
  for (ShardNumber shard = 0; shard < shards(); ++shard) {
    const Row& row = rows_[shard];
    owners.push_back({shard, row.owner, row.epoch, has_run_out(row)});
  }
  return owners;
}

Result<std::vector<QueuePartitions>> MemoryLeaseTable::partitioned() {
  TRY(count_call());
  return partitioned_;
}

}  // namespace detent
