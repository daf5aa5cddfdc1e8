#include "cluster/shard_keeper.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "base/fnv.h"
#include "detent/check.h"

namespace detent {
namespace {

constexpr int kBeatsALease = 5;
/// How often per lease the keeper checks whether moving shards have closed, because no node serves
/// a shard while it moves.
constexpr int kLooksALease = 40;

/// The rank of a node for a shard. A node with a higher rank is preferred for the shard.
std::uint64_t rank_of(std::string_view node, ShardNumber shard) noexcept {
  return Rng(fnv1a(std::string(node) + "/" + std::to_string(shard))).next();
}

}  // namespace

std::size_t fair_share(const std::vector<Member>& members, std::string_view node,
                       ShardNumber shards) {
  const auto me = std::ranges::find(members, node, &Member::node);
  DETENT_CHECK(me != members.end() && me->presence == Presence::staying);
  std::size_t staying = 0;
  std::size_t rank = 0;
  for (const Member& other : members) {
    if (other.presence == Presence::leaving) continue;
    ++staying;
    if (other.node < me->node) ++rank;
  }
  return shards / staying + (rank < shards % staying ? 1 : 0);
}

ShardKeeper::ShardKeeper(LeaseTable& table, ShardHost& host, const Clock& clock, Member me,
                         std::uint64_t seed)
    : table_(table),
      host_(host),
      clock_(clock),
      me_(std::move(me)),
      rng_(seed),
      next_step_(clock.now()) {}

Result<void> ShardKeeper::step() {
  const MonotonicTime asked_at = clock_.now();
  const std::chrono::duration<double> beat = table_.lease_length() / kBeatsALease;
  next_step_ = asked_at + std::chrono::duration_cast<std::chrono::nanoseconds>(
                              beat * (0.9 + 0.2 * rng_.unit()));

  TRY(give_up_closed());
  ASSIGN_OR_RETURN(ClusterView view, table_.beat(me_, held()));
  renewed(view, asked_at);
  members_ = std::move(view.members);
  missing_ = std::move(view.missing);
  const bool is_retiring = me_.presence == Presence::leaving;
  const std::size_t share = is_retiring ? 0 : fair_share(members_, me_.node, table_.shards());
  close_surplus(share);
  if (open_count() < held_.size()) {
    next_step_ = std::min(next_step_, asked_at + table_.lease_length() / kLooksALease);
  }
  return take_missing(view.free, share);
}

/// Updates the held shards. A lease is certain to last only for its length from before the table
/// was asked, because the table may have renewed it at that moment.
void ShardKeeper::renewed(const ClusterView& view, MonotonicTime asked_at) {
  for (auto it = held_.begin(); it != held_.end();) {
    auto& [shard, holding] = *it;
    if (std::ranges::find(view.held, ShardLease{shard, holding.epoch}) == view.held.end()) {
      host_.drop(shard);
      it = held_.erase(it);
    } else {
      holding.until = asked_at + table_.lease_length();
      ++it;
    }
  }
}

Result<void> ShardKeeper::give_up_closed() {
  for (auto it = held_.begin(); it != held_.end();) {
    const auto& [shard, holding] = *it;
    if (!host_.is_closed(shard)) {
      ++it;
      continue;
    }
    TRY(table_.give_up({shard, holding.epoch}));
    host_.drop(shard);
    it = held_.erase(it);
  }
  return ok();
}

/// Closes the shards for which this node ranks lowest, because another node is most likely to rank
/// higher.
void ShardKeeper::close_surplus(std::size_t share) {
  while (open_count() > share) {
    auto lowest = held_.end();
    for (auto it = held_.begin(); it != held_.end(); ++it) {
      if (it->second.is_closing) continue;
      const bool is_lower =
          lowest == held_.end() || rank_of(me_.node, it->first) < rank_of(me_.node, lowest->first);
      if (is_lower) lowest = it;
    }
    lowest->second.is_closing = true;
    host_.close(lowest->first);
  }
}

/// Takes free shards. Another node may be faster, so each shard is tried only once, and only as
/// many as this node lacks. The next step sees which shards are still free.
Result<void> ShardKeeper::take_missing(const std::vector<ShardNumber>& free, std::size_t share) {
  std::vector<std::pair<std::size_t, ShardNumber>> by_preference;
  for (const ShardNumber shard : free) by_preference.emplace_back(nodes_before_me(shard), shard);
  std::ranges::sort(by_preference);
  const std::size_t missing = share - std::min(share, open_count());
  by_preference.resize(std::min(free.size(), missing));
  for (const auto& [before_me, shard] : by_preference) {
    const MonotonicTime asked_at = clock_.now();
    ASSIGN_OR_RETURN(const std::optional<ShardLease> lease, table_.take(shard, me_.node));
    if (!lease) continue;
    held_[shard] = {.epoch = lease->epoch, .until = asked_at + table_.lease_length()};
    host_.open(*lease);
  }
  return ok();
}

std::size_t ShardKeeper::nodes_before_me(ShardNumber shard) const {
  const std::uint64_t mine = rank_of(me_.node, shard);
  return static_cast<std::size_t>(std::ranges::count_if(members_, [&](const Member& member) {
    return member.presence == Presence::staying && rank_of(member.node, shard) > mine;
  }));
}

std::size_t ShardKeeper::open_count() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(held_, [](const auto& entry) { return !entry.second.is_closing; }));
}

std::optional<MonotonicTime> ShardKeeper::held_until(const ShardLease& lease) const noexcept {
  const auto it = held_.find(lease.shard);
  if (it == held_.end() || it->second.epoch != lease.epoch) return std::nullopt;
  return it->second.until;
}

std::vector<ShardLease> ShardKeeper::held() const {
  std::vector<ShardLease> leases;
  leases.reserve(held_.size());
  for (const auto& [shard, holding] : held_) leases.push_back({shard, holding.epoch});
  return leases;
}

}  // namespace detent
