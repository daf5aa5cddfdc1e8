// The entries of a DelayMap, without threads, clocks or types: a hash table in which each entry
// also has a deadline in a wheel.
//
// The owner (delay_map.cc) holds one lock for all of it, and passes the present time. The table
// never destroys keys and values, because that may run user code. It returns them to the holder of
// the lock.
//
// An entry leaves the wheel only when its deadline has passed. If a lookup meets an expired entry
// before that, it only removes the entry from its bucket, so that the key is free. The wheel then
// returns the entry. So each expired entry is reported exactly once.
//
// Each bucket is a singly linked list of entries. The high bits of a product choose the bucket
// (Knuth, The Art of Computer Programming 3, 6.4), because std::hash of an integer often returns
// the integer itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/slab.h"
#include "detent/clock.h"
#include "detent/delay_map.h"
#include "runtime/collections/deadline_wheel.h"

namespace detent::internal {

/// A list of entries that were removed from the table, in order. Owns the entries.
class DelayMapChain {
 public:
  DelayMapChain() = default;
  ~DelayMapChain() {
    while (pop() != nullptr) continue;
  }
  DelayMapChain(DelayMapChain&& other) noexcept;
  DelayMapChain& operator=(DelayMapChain&&) = delete;

  void push(std::unique_ptr<DelayMapNode> node) noexcept;
  /// Null if the list is empty.
  std::unique_ptr<DelayMapNode> pop() noexcept;
  bool empty() const noexcept { return first_ == nullptr; }

 private:
  DelayMapNode* first_ = nullptr;
  DelayMapNode* last_ = nullptr;  // valid only if first_ is not null
};

/// Owns its entries. An entry is *live* until its deadline, and *listed* while it is in its bucket.
/// Thread-compatible.
///
/// Invariants:
///  1. Every entry except those in `expired_` has a slot in slots_, with the same index, and is
///     pending in the wheel at its deadline.
///  2. A listed entry is in the bucket of its hash exactly once. listed_ counts these entries.
///  3. An entry that is not listed has expired: its deadline has passed.
///  4. The number of buckets is zero or a power of two, and at least listed_.
class DelayTable {
 public:
  DelayTable(MonotonicTime start, std::chrono::nanoseconds resolution)
      : wheel_(start, resolution) {}
  ~DelayTable();
  DelayTable(const DelayTable&) = delete;
  DelayTable& operator=(const DelayTable&) = delete;

  /// The live entry with the key; null if there is none. Removes an expired entry with the key from
  /// its bucket.
  DelayMapNode* find(const DelayMapProbe& probe, MonotonicTime now);

  /// Requires: no listed entry has the key of `node`. Call `find` first to make sure.
  void add(std::unique_ptr<DelayMapNode> node, std::size_t hash, MonotonicTime deadline);
  /// Replaces `old` by `fresh`, which must have the same key. Returns the old entry.
  std::unique_ptr<DelayMapNode> replace(DelayMapNode& old, std::unique_ptr<DelayMapNode> fresh,
                                        MonotonicTime deadline) noexcept;
  void move(DelayMapNode& node, MonotonicTime deadline) noexcept;
  /// Removes and returns a live entry.
  std::unique_ptr<DelayMapNode> remove(DelayMapNode& node) noexcept;
  /// Removes and returns all live entries. O(n).
  DelayMapChain remove_live(MonotonicTime now);

  /// Moves expired entries out of the table, earliest first; `take_expired` then returns them. Does
  /// at most `limit` steps. Returns whether work may be left.
  bool expire(MonotonicTime now, std::size_t limit) noexcept;
  DelayMapChain take_expired() noexcept { return std::move(expired_); }
  bool has_expired() const noexcept { return !expired_.empty(); }

  /// The time of the next work of `expire`, rounded up to the resolution. May be too early.
  std::optional<MonotonicTime> next_wakeup() const noexcept { return wheel_.next_wakeup(); }

  /// The number of listed entries: all live entries, and some expired ones.
  std::size_t listed() const noexcept { return listed_; }

  /// Stops the process unless the invariants hold. The cost is O(n), plus the squared length of
  /// each bucket.
  void check_invariants(MonotonicTime now) const noexcept;

 private:
  struct Slot {
    std::uint32_t index;
    DelayMapNode* node = nullptr;
  };

  std::size_t bucket_of(std::size_t hash) const noexcept;
  void list(DelayMapNode& node) noexcept;
  /// The pointer that points at `node`. Requires: `node` is listed.
  DelayMapNode*& link_to(const DelayMapNode& node) noexcept;
  void unlist(DelayMapNode& node) noexcept;
  void grow();
  std::unique_ptr<DelayMapNode> release(std::uint32_t index) noexcept;

  std::vector<DelayMapNode*> buckets_;
  std::size_t listed_ = 0;
  Slab<Slot> slots_;
  DeadlineWheel wheel_;
  DelayMapChain expired_;
};

}  // namespace detent::internal
