#include "runtime/collections/delay_table.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "detent/check.h"

namespace detent::internal {

// ---- DelayMapChain ------------------------------------------------------------------------------

DelayMapChain::DelayMapChain(DelayMapChain&& other) noexcept
    : first_(std::exchange(other.first_, nullptr)), last_(std::exchange(other.last_, nullptr)) {}

void DelayMapChain::push(std::unique_ptr<DelayMapNode> node) noexcept {
  DelayMapNode* const added = node.release();
  added->next = nullptr;
  (empty() ? first_ : last_->next) = added;
  last_ = added;
}

std::unique_ptr<DelayMapNode> DelayMapChain::pop() noexcept {
  std::unique_ptr<DelayMapNode> node(first_);
  if (node != nullptr) first_ = node->next;
  return node;
}

// ---- DelayTable ---------------------------------------------------------------------------------

DelayTable::~DelayTable() {
  slots_.for_each([](Slot& slot) { delete slot.node; });
}

DelayMapNode* DelayTable::find(const DelayMapProbe& probe, MonotonicTime now) {
  if (buckets_.empty()) return nullptr;
  DelayMapNode* node = buckets_[bucket_of(probe.hash)];
  while (node != nullptr && !(node->hash == probe.hash && probe.matches(*node))) node = node->next;
  if (node == nullptr || now < node->deadline) return node;
  unlist(*node);
  return nullptr;
}

void DelayTable::add(std::unique_ptr<DelayMapNode> node, std::size_t hash, MonotonicTime deadline) {
  if (listed_ == buckets_.size()) grow();
  Slot& slot = slots_.emplace();
  slot.node = node.release();
  slot.node->hash = hash;
  slot.node->index = slot.index;
  list(*slot.node);
  ++listed_;
  move(*slot.node, deadline);
}

std::unique_ptr<DelayMapNode> DelayTable::replace(DelayMapNode& old,
                                                  std::unique_ptr<DelayMapNode> fresh,
                                                  MonotonicTime deadline) noexcept {
  fresh->hash = old.hash;
  fresh->index = old.index;
  fresh->next = old.next;
  fresh->is_listed = true;
  link_to(old) = fresh.get();
  std::unique_ptr<DelayMapNode> replaced(std::exchange(slots_[old.index].node, fresh.release()));
  move(*slots_[old.index].node, deadline);
  return replaced;
}

void DelayTable::move(DelayMapNode& node, MonotonicTime deadline) noexcept {
  node.deadline = deadline;
  wheel_.set(node.index, deadline);
}

std::unique_ptr<DelayMapNode> DelayTable::remove(DelayMapNode& node) noexcept {
  unlist(node);
  wheel_.cancel(node.index);
  return release(node.index);
}

DelayMapChain DelayTable::remove_live(MonotonicTime now) {
  DelayMapChain live;
  slots_.for_each([&](Slot& slot) {
    if (now < slot.node->deadline) live.push(remove(*slot.node));
  });
  return live;
}

bool DelayTable::expire(MonotonicTime now, std::size_t limit) noexcept {
  const auto on_fire = [this](std::uint32_t index) {
    DelayMapNode& node = *slots_[index].node;
    if (node.is_listed) unlist(node);
    expired_.push(release(index));
  };
  return wheel_.advance(now, on_fire, limit);
}

std::size_t DelayTable::bucket_of(std::size_t hash) const noexcept {
  constexpr std::uint64_t kGoldenRatio = 0x9E37'79B9'7F4A'7C15u;  // 2^64 / golden ratio
  const int bits = std::countr_zero(buckets_.size());
  return bits == 0 ? 0 : static_cast<std::size_t>((hash * kGoldenRatio) >> (64 - bits));
}

void DelayTable::list(DelayMapNode& node) noexcept {
  DelayMapNode*& first = buckets_[bucket_of(node.hash)];
  node.next = std::exchange(first, &node);
  node.is_listed = true;
}

DelayMapNode*& DelayTable::link_to(const DelayMapNode& node) noexcept {
  DelayMapNode** link = &buckets_[bucket_of(node.hash)];
  while (*link != &node) link = &(*link)->next;
  return *link;
}

void DelayTable::unlist(DelayMapNode& node) noexcept {
  link_to(node) = node.next;
  node.is_listed = false;
  --listed_;
}

void DelayTable::grow() {
  constexpr std::size_t kFirstBuckets = 8;
  const auto old = std::exchange(
      buckets_, std::vector<DelayMapNode*>(std::max(kFirstBuckets, 2 * buckets_.size())));
  for (DelayMapNode* node : old) {
    while (node != nullptr) list(*std::exchange(node, node->next));
  }
}

std::unique_ptr<DelayMapNode> DelayTable::release(std::uint32_t index) noexcept {
  std::unique_ptr<DelayMapNode> node(slots_[index].node);
  slots_.erase(index);
  return node;
}

void DelayTable::check_invariants(MonotonicTime now) const noexcept {
  wheel_.check_invariants();
  slots_.check_invariants();
  DETENT_CHECK(wheel_.size() == slots_.size());
  slots_.for_each([&](const Slot& slot) {
    DETENT_CHECK(slot.node->index == slot.index && wheel_.is_pending(slot.index));
    DETENT_CHECK(slot.node->is_listed || slot.node->deadline <= now);
  });
  DETENT_CHECK(buckets_.empty() || std::has_single_bit(buckets_.size()));
  DETENT_CHECK(listed_ <= buckets_.size());
  std::size_t listed = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (const DelayMapNode* node = buckets_[bucket]; node != nullptr; node = node->next) {
      ++listed;
      DETENT_CHECK(node->is_listed && bucket_of(node->hash) == bucket);
      DETENT_CHECK(slots_[node->index].node == node);
    }
  }
  DETENT_CHECK(listed == listed_);
}

}  // namespace detent::internal
