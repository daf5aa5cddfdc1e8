// DelayMap: a map for several threads whose entries expire at their deadlines. Uses: a cache with
// TTLs, sessions, locks with a time limit, recently seen ids.
//
//     detent::DelayMap<std::string, Blob> ttl;
//     ttl.insert_or_assign("user:42", blob, 5min);                // any thread
//     std::optional<Blob> found = ttl.get("user:42");             // none after five minutes
//     ttl.touch("user:42", 10min);                                // expires 10 minutes from now
//
// Guarantees. An entry is visible until its deadline on the given clock, and never longer, even if
// its removal is late. Setting a key again replaces the old deadline. Each entry ends once: it is
// replaced, taken, erased, cleared or expired. Only an expired entry goes to on_expire.
//
// Removal of expired entries. Without a scheduler, each call of the map removes a few expired
// entries, so memory is freed as long as the map is used. `expire` removes all expired entries.
// With a scheduler, one timer of the scheduler removes them on time. The timer is set to the map's
// next wake-up. While the map has no entry with a deadline, the scheduler does not wake for it.
//
// Source: Redis combines active expiry with a check at each read (src/expire.c). DelayMap does the
// same, but uses a timing wheel instead of random samples. Read next:
// src/runtime/collections/delay_table.h.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "detent/clock.h"
#include "detent/internal/function_ref.h"
#include "detent/internal/saturate.h"

namespace detent {

class Scheduler;

/// Options of a DelayMap.
template <class K, class V>
struct DelayMapOptions {
  /// Called with each expired entry; may move the value out. Must not throw.
  ///
  /// No lock is held, so the function may use the map. The key can already be in the map again.
  /// With a scheduler the function runs on the scheduler's executor, one call at a time. Without a
  /// scheduler it runs inside a call of the map, on the thread that finds the expired entry. In
  /// both cases `expire` calls the function on its own thread.
  std::function<void(const K&, V&)> on_expire = nullptr;
  /// The largest number of live entries. If the map is full, a new key is refused with
  /// InsertResult::full; a key with a live entry can still be assigned. Requires: at least 1.
  std::size_t capacity = std::numeric_limits<std::size_t>::max();
  /// Used only with a scheduler. Wake-ups are rounded up to multiples of this duration. on_expire
  /// can be later by this duration, and entries that expire together cost only one wake-up.
  /// Requires: above 0.
  std::chrono::nanoseconds resolution = std::chrono::milliseconds{1};
  /// Null: the scheduler's clock, or the machine's clock if `scheduler` is null. Otherwise the
  /// clock must outlive the map, and must be the scheduler's clock if there is a scheduler.
  const Clock* clock = nullptr;
  /// Removes expired entries. Null: the calls of the map remove them. Must outlive the map, but may
  /// stop earlier. After the stop, only `expire` (and the destructor) frees expired entries, and
  /// only `expire` calls on_expire. If the scheduler is full and refuses the map's timer, the map
  /// tries again later.
  Scheduler* scheduler = nullptr;
};

/// The result of offering an entry to the map.
enum class InsertResult : std::uint8_t {
  inserted,
  assigned,  // replaced a live entry
  present,   // refused: the key has a live entry
  full,      // refused: the map has reached its capacity
};

namespace internal {

/// An entry of any type. The map's core owns all fields except the key and the value.
struct DelayMapNode {
  DelayMapNode() = default;
  virtual ~DelayMapNode() = default;
  DelayMapNode(const DelayMapNode&) = delete;
  DelayMapNode& operator=(const DelayMapNode&) = delete;

  MonotonicTime deadline;
  std::size_t hash = 0;
  DelayMapNode* next = nullptr;  // in its bucket, or in a chain of removed nodes
  std::uint32_t index = 0;       // index in the wheel
  bool is_listed = false;        // true while the node is in its bucket
};

/// A key to look up. Borrows the key.
struct DelayMapProbe {
  std::size_t hash;
  FunctionRef<bool(const DelayMapNode&)> matches;
};

/// The effect of a new entry on a live entry with the same key.
enum class Existing : std::uint8_t { keep, replace };

/// The part of DelayMap that does not depend on the entry type;
/// src/runtime/collections/delay_map.cc. Thread-safe.
class DelayMapCore {
 public:
  struct Options {
    std::function<void(DelayMapNode&)> on_expire;
    std::size_t capacity;
    std::chrono::nanoseconds resolution;
    const Clock* clock;
    Scheduler* scheduler;
  };

  explicit DelayMapCore(Options options);
  ~DelayMapCore();
  DelayMapCore(const DelayMapCore&) = delete;
  DelayMapCore& operator=(const DelayMapCore&) = delete;

  /// Takes `node` if it is inserted. If it is assigned, `node` holds the replaced node afterwards.
  InsertResult put(std::unique_ptr<DelayMapNode>& node, const DelayMapProbe& probe,
                   std::chrono::nanoseconds ttl, Existing existing);
  /// Sets the deadline of the live entry to `ttl` from now. Returns false if the key has no live
  /// entry.
  bool touch(const DelayMapProbe& probe, std::chrono::nanoseconds ttl);
  /// Calls `visitor` with the live entry, under the lock. `visitor` may throw. Returns false if the
  /// key has no live entry.
  bool visit(const DelayMapProbe& probe, FunctionRef<void(DelayMapNode&)> visitor) const;
  /// Removes and returns the live entry; null if the key has no live entry.
  std::unique_ptr<DelayMapNode> take(const DelayMapProbe& probe);
  std::size_t size() const;
  std::size_t expire();
  void clear();
  void check_invariants() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The type in which lookups take a key. A string is passed as a view, so a lookup copies no
/// string.
template <class K>
using KeyView = std::conditional_t<std::is_same_v<K, std::string>, std::string_view, const K&>;

}  // namespace internal

/// A map with one deadline per entry. Thread-safe.
///
/// Cost: each call holds one lock for O(1), amortised. When the table grows, one call takes O(n).
/// Each insertion makes one allocation, for its entry. An entry needs about 100 bytes in addition
/// to its key and value. After an entry has ended, the map keeps at most 20 of these 100 bytes, and
/// uses them for a later entry. If the allocation of an entry fails, the call throws std::bad_alloc
/// and the map does not change. If another allocation fails, the process ends.
///
/// User code under the lock: `Equal` on keys, V's copy constructor in `get`, and the function
/// passed to `with`. This code must not call the map; such a call stops the process. Keys and
/// values are made, moved and destroyed without the lock.
///
/// Requires: Hash of a KeyView<K> does not throw; Equal compares a K with a KeyView<K>.
template <class K, class V, class Hash = std::hash<std::remove_cvref_t<internal::KeyView<K>>>,
          class Equal = std::equal_to<>>
class DelayMap {
 public:
  /// The parameter type of lookups: `const K&`, or std::string_view if K is std::string.
  using Key = internal::KeyView<K>;

  /// Makes an empty map.
  explicit DelayMap(DelayMapOptions<K, V> options = {})
      : core_({.on_expire = erased(std::move(options.on_expire)),
               .capacity = options.capacity,
               .resolution = options.resolution,
               .clock = options.clock,
               .scheduler = options.scheduler}) {
    static_assert(std::is_invocable_r_v<std::size_t, Hash, Key>,
                  "keys of a DelayMap need a hash: a std::hash of theirs, or the third argument");
    static_assert(std::is_invocable_r_v<bool, Equal, const K&, Key>,
                  "keys of a DelayMap are compared: by ==, or by the fourth argument");
  }
  /// Waits until a running on_expire of the scheduler has returned; no further call follows. Then
  /// destroys the remaining entries. In a child process of fork(), if the scheduler belongs to the
  /// parent, the destructor returns immediately and destroys no entry.
  ///
  /// Requires: no thread is inside a call of the map; not called from inside on_expire.
  ~DelayMap() = default;
  DelayMap(const DelayMap&) = delete;
  DelayMap& operator=(const DelayMap&) = delete;

  /// Stores an entry that expires `ttl` from now, and replaces the value and deadline that the key
  /// had. A ttl of 0 or less expires immediately. A ttl beyond the end of the clock never expires.
  /// If the map refuses a V given as an rvalue, it moves the V back; `insert` does this too.
  ///
  /// Returns: `inserted`, `assigned` or `full`.
  template <class Rep, class Period, class KK = K, class VV = V>
  requires std::constructible_from<K, KK> && std::constructible_from<V, VV> InsertResult
  insert_or_assign(KK&& key, VV&& value, std::chrono::duration<Rep, Period> ttl) {
    return put(std::forward<KK>(key), std::forward<VV>(value),
               internal::saturate_to_nanoseconds(ttl), internal::Existing::replace);
  }

  /// Stores an entry unless the key has a live entry, which then stays unchanged. Otherwise as
  /// insert_or_assign. Returns: `inserted`, `present` or `full`.
  template <class Rep, class Period, class KK = K, class VV = V>
  requires std::constructible_from<K, KK> && std::constructible_from<V, VV>
  [[nodiscard]] InsertResult insert(KK&& key, VV&& value, std::chrono::duration<Rep, Period> ttl) {
    return put(std::forward<KK>(key), std::forward<VV>(value),
               internal::saturate_to_nanoseconds(ttl), internal::Existing::keep);
  }

  /// Sets the deadline of an entry to `ttl` from now, which can be later or earlier than before. A
  /// ttl of 0 or less expires the entry immediately. Returns false if the key has no live entry.
  template <class Rep, class Period>
  bool touch(Key key, std::chrono::duration<Rep, Period> ttl) {
    return look(key, [&](const internal::DelayMapProbe& probe) {
      return core_.touch(probe, internal::saturate_to_nanoseconds(ttl));
    });
  }

  /// Returns a copy of the live value, or std::nullopt. The copy is made under the lock; use a
  /// shared_ptr for large values.
  std::optional<V> get(Key key) const {
    static_assert(std::copy_constructible<V>,
                  "get() copies the value; what can only be moved is for with() and take()");
    std::optional<V> copy;
    with(key, [&](const V& value) { copy.emplace(value); });
    return copy;
  }

  /// Calls `f(V&)` with the live value, under the lock. `f` may change the value, but not the
  /// deadline. Keep `f` short. Requires: `f` does not call this map. Returns false if the key has
  /// no live entry.
  template <std::invocable<V&> F>
  bool with(Key key, F&& f) {
    return visit(key, [&](internal::DelayMapNode& node) { f(node_of(node).value); });
  }
  /// As above, but calls `f(const V&)`.
  template <std::invocable<const V&> F>
  bool with(Key key, F&& f) const {
    return visit(key, [&](internal::DelayMapNode& node) { f(std::as_const(node_of(node).value)); });
  }

  /// Returns true if the key has a live entry.
  bool contains(Key key) const {
    return visit(key, [](internal::DelayMapNode&) {});
  }

  /// Removes and returns the live value; std::nullopt if the key has no live entry.
  std::optional<V> take(Key key) {
    const std::unique_ptr<internal::DelayMapNode> node = remove(key);
    if (node == nullptr) return std::nullopt;
    return std::optional<V>(std::move(node_of(*node).value));
  }

  /// Removes the live entry. Returns false if the key has no live entry.
  bool erase(Key key) { return remove(key) != nullptr; }

  /// Returns the exact number of live entries. To count exactly, the call first removes all expired
  /// entries, and on_expire gets them. Amortised O(1); a single call can be O(n).
  std::size_t size() const { return core_.size(); }
  /// Returns size() == 0, at the same cost.
  bool empty() const { return size() == 0; }

  /// Removes all expired entries and calls on_expire for them in this call. Returns the number of
  /// removed entries.
  std::size_t expire() { return core_.expire(); }

  /// Erases all live entries; on_expire does not get them. Entries that have expired but were not
  /// removed yet still go to on_expire. O(n).
  void clear() { core_.clear(); }

  /// For tests: stops the process if an invariant of the core is broken. O(n) under the lock.
  void check_invariants() const noexcept { core_.check_invariants(); }

 private:
  struct Node final : internal::DelayMapNode {
    template <class KK, class VV>
    Node(KK&& from_key, VV&& from_value)
        : key(std::forward<KK>(from_key)), value(std::forward<VV>(from_value)) {}
    const K key;
    V value;
  };

  static Node& node_of(internal::DelayMapNode& node) { return static_cast<Node&>(node); }

  static std::function<void(internal::DelayMapNode&)> erased(
      std::function<void(const K&, V&)> on_expire) {
    if (!on_expire) return nullptr;
    return [on_expire = std::move(on_expire)](internal::DelayMapNode& node) {
      on_expire(node_of(node).key, node_of(node).value);
    };
  }

  /// Calls `f` with the probe for `key`.
  template <class F>
  static auto look(Key key, const F& f) {
    const auto matches = [&key](const internal::DelayMapNode& node) {
      return Equal{}(static_cast<const Node&>(node).key, key);
    };
    return f(internal::DelayMapProbe{.hash = Hash{}(key), .matches = matches});
  }

  template <class F>
  bool visit(Key key, const F& visitor) const {
    return look(key,
                [&](const internal::DelayMapProbe& probe) { return core_.visit(probe, visitor); });
  }

  std::unique_ptr<internal::DelayMapNode> remove(Key key) {
    return look(key, [&](const internal::DelayMapProbe& probe) { return core_.take(probe); });
  }

  template <class KK, class VV>
  InsertResult put(KK&& key, VV&& value, std::chrono::nanoseconds ttl,
                   internal::Existing existing) {
    auto made = std::make_unique<Node>(std::forward<KK>(key), std::forward<VV>(value));
    const Node& made_node = *made;
    std::unique_ptr<internal::DelayMapNode> node = std::move(made);
    const InsertResult result = look(made_node.key, [&](const internal::DelayMapProbe& probe) {
      return core_.put(node, probe, ttl, existing);
    });
    if constexpr (std::is_same_v<VV, V>) {  // not a reference: the value was an rvalue
      const bool refused = result == InsertResult::present || result == InsertResult::full;
      if (refused) value = std::move(node_of(*node).value);
    }
    return result;
  }

  internal::DelayMapCore core_;
};

}  // namespace detent
