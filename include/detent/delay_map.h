// DelayMap: a map between threads whose entries vanish at their deadlines: a cache with TTLs,
// sessions, locks that run out, ids that were seen lately.
//
//     detent::DelayMap<std::string, Blob> ttl;
//     ttl.insert_or_assign("user:42", blob, 5min);                // any thread
//     std::optional<Blob> found = ttl.get("user:42");             // none after five minutes
//     ttl.touch("user:42", 10min);                                // ten from now, not from then
//
// Promises. An entry is visible until its deadline by the clock given, and not a nanosecond longer,
// however late anything that removes it. An entry belongs to its deadline, not to its key: when a
// key is set again, the deadline it had before is gone. Each entry ends once: replaced, taken,
// erased, cleared, or expired, and then on_expire gets it.
//
// Who removes what expired. Without a scheduler the calls of the map do, each a few entries, so
// that memory comes back as long as the map is used; `expire` removes all. With a scheduler one
// timer of it, set for the next wake-up of the map, does it on time (tickless: no deadlines, no
// wake-ups).
//
// The idea, expiry by timers beside a check at each read, is Redis's (active and lazy expiry,
// src/expire.c) with a timing wheel in place of samples. Read next: src/runtime/delay_table.h.
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

template <class K, class V>
struct DelayMapOptions {
  /// Gets each entry that expired, and may move the value out. Called without a lock, so it may use
  /// the map; by then the key may be there again. With a scheduler it is called on its executor,
  /// one call at a time; without one on the thread that finds the entry, inside a call of the map;
  /// `expire` calls it on its own thread in both cases. Must not throw.
  std::function<void(const K&, V&)> on_expire = nullptr;
  /// How many live entries there may be. Requires: at least 1.
  std::size_t capacity = std::numeric_limits<std::size_t>::max();
  /// With a scheduler: wake-ups are rounded up to multiples of this, so on_expire comes so much
  /// later, and entries that expire together cost one wake-up. Requires: positive.
  std::chrono::nanoseconds resolution = std::chrono::milliseconds{1};
  /// Null: the scheduler's clock, or without one the machine's. Otherwise it must outlive the map,
  /// and be the scheduler's.
  const Clock* clock = nullptr;
  /// Must outlive the map; it may stop before. From then on only `expire` calls on_expire, and with
  /// `clear` gives memory back. One that is full and refuses the map's timer is asked again later.
  Scheduler* scheduler = nullptr;
};

/// What became of an entry that was offered.
enum class InsertResult : std::uint8_t {
  inserted,
  assigned,  // it took the place of a live one
  present,   // refused: there is a live one of that key
  full,      // refused: there are as many live entries as there may be
};

namespace internal {

/// An entry of whatever type. All but the key and the value belongs to the map's core.
struct DelayMapNode {
  DelayMapNode() = default;
  virtual ~DelayMapNode() = default;
  DelayMapNode(const DelayMapNode&) = delete;
  DelayMapNode& operator=(const DelayMapNode&) = delete;

  MonotonicTime deadline;
  std::size_t hash = 0;
  DelayMapNode* next = nullptr;  // in its bucket, or in a chain of those that were taken out
  std::uint32_t index = 0;       // in the wheel
  bool is_listed = false;        // in its bucket
};

/// A key that is looked for. Borrows it.
struct DelayMapProbe {
  std::size_t hash;
  FunctionRef<bool(const DelayMapNode&)> matches;
};

/// What a new entry does to a live one of the same key.
enum class Existing : std::uint8_t { keep, replace };

/// All of a DelayMap but the types of its entries; src/runtime/delay_map.cc. Thread-safe.
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

  /// Takes `node` when it is inserted; when it is assigned `node` is the old one afterwards.
  InsertResult put(std::unique_ptr<DelayMapNode>& node, const DelayMapProbe& probe,
                   std::chrono::nanoseconds ttl, Existing existing);
  bool touch(const DelayMapProbe& probe, std::chrono::nanoseconds ttl);
  /// Calls `visitor` under the lock with the live entry, if there is one; it may throw.
  bool visit(const DelayMapProbe& probe, FunctionRef<void(DelayMapNode&)> visitor) const;
  std::unique_ptr<DelayMapNode> take(const DelayMapProbe& probe);
  std::size_t size() const;
  std::size_t expire();
  void clear();
  void check_invariants() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// How keys are handed to lookups: strings as views, so that nothing is copied to look for them.
template <class K>
using KeyView = std::conditional_t<std::is_same_v<K, std::string>, std::string_view, const K&>;

}  // namespace internal

/// Thread-safe. Calls hold one lock for O(1), amortised over calls and without the growth of the
/// table, which takes O(n) now and then. An insertion allocates once, for its entry. An entry takes
/// about 100 bytes besides its key and value, of which 20 at most are kept when it is gone, for the
/// next; running out of memory for any but the entry itself ends the process.
///
/// User code under the lock: `Equal` on keys, V's copy in `get`, and the function given to `with`.
/// None of it may call the map, which stops the process. Keys and values are made, moved and
/// destroyed without the lock. Requires: Hash of a KeyView<K> does not throw; Equal compares a K
/// with a KeyView<K>.
template <class K, class V, class Hash = std::hash<std::remove_cvref_t<internal::KeyView<K>>>,
          class Equal = std::equal_to<>>
class DelayMap {
 public:
  /// A `const K&`, or a string_view where K is a std::string.
  using Key = internal::KeyView<K>;

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
  /// Waits for an on_expire that the scheduler runs; none is called any more. Destroys what is
  /// left. Requires: no thread is inside a call; not called from inside on_expire. In a child
  /// process of fork(), when it has a scheduler of the parent, it returns at once and destroys
  /// nothing.
  ~DelayMap() = default;
  DelayMap(const DelayMap&) = delete;
  DelayMap& operator=(const DelayMap&) = delete;

  /// Puts the entry in, to vanish `ttl` from now (at once when that is not positive, never when it
  /// is longer than time), whatever value and deadline the key had. Here and in `insert` a V given
  /// as an rvalue is moved back to its owner when it is refused.
  /// Returns: `inserted`, `assigned` or `full`.
  template <class Rep, class Period, class KK = K, class VV = V>
  requires std::constructible_from<K, KK> && std::constructible_from<V, VV> InsertResult
  insert_or_assign(KK&& key, VV&& value, std::chrono::duration<Rep, Period> ttl) {
    return put(std::forward<KK>(key), std::forward<VV>(value),
               internal::saturate_to_nanoseconds(ttl), internal::Existing::replace);
  }

  /// The same unless there is a live entry of that key, which stays as it is.
  /// Returns: `inserted`, `present` or `full`.
  template <class Rep, class Period, class KK = K, class VV = V>
  requires std::constructible_from<K, KK> && std::constructible_from<V, VV>
  [[nodiscard]] InsertResult insert(KK&& key, VV&& value, std::chrono::duration<Rep, Period> ttl) {
    return put(std::forward<KK>(key), std::forward<VV>(value),
               internal::saturate_to_nanoseconds(ttl), internal::Existing::keep);
  }

  /// Gives the entry another deadline, `ttl` from now: later or earlier than it was.
  /// Returns: false when there is no live one.
  template <class Rep, class Period>
  bool touch(Key key, std::chrono::duration<Rep, Period> ttl) {
    return look(key, [&](const internal::DelayMapProbe& probe) {
      return core_.touch(probe, internal::saturate_to_nanoseconds(ttl));
    });
  }

  /// Returns: a copy of the live value, made under the lock; for big ones use a shared_ptr.
  std::optional<V> get(Key key) const {
    static_assert(std::copy_constructible<V>,
                  "get() copies the value; what can only be moved is for with() and take()");
    std::optional<V> copy;
    with(key, [&](const V& value) { copy.emplace(value); });
    return copy;
  }

  /// Calls `f(V&)` with the live value, under the lock: keep it short. It may change the value; the
  /// deadline stays. Requires: `f` does not call this map. Returns: false when there is no live
  /// one.
  template <std::invocable<V&> F>
  bool with(Key key, F&& f) {
    return visit(key, [&](internal::DelayMapNode& node) { f(node_of(node).value); });
  }
  /// The same with `f(const V&)`.
  template <std::invocable<const V&> F>
  bool with(Key key, F&& f) const {
    return visit(key, [&](internal::DelayMapNode& node) { f(std::as_const(node_of(node).value)); });
  }

  bool contains(Key key) const {
    return visit(key, [](internal::DelayMapNode&) {});
  }

  /// Takes the live value out of the map, if there is one.
  std::optional<V> take(Key key) {
    const std::unique_ptr<internal::DelayMapNode> node = remove(key);
    if (node == nullptr) return std::nullopt;
    return std::optional<V>(std::move(node_of(*node).value));
  }

  /// Returns: whether there was a live entry, which is gone now.
  bool erase(Key key) { return remove(key) != nullptr; }

  /// How many live entries there are, exactly. Takes out all that has expired (on_expire gets it as
  /// ever), so now and then it is O(n); amortised O(1).
  std::size_t size() const { return core_.size(); }
  bool empty() const { return size() == 0; }

  /// Removes all that has expired and hands it to on_expire in this call.
  /// Returns: how many entries that were.
  std::size_t expire() { return core_.expire(); }

  /// Erases all live entries. O(n).
  void clear() { core_.clear(); }

  /// For tests: stops the process unless the invariants of the core hold. O(n) under the lock.
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
    if constexpr (std::is_same_v<VV, V>) {  // not a VV&: it was given as an rvalue
      const bool refused = result == InsertResult::present || result == InsertResult::full;
      if (refused) value = std::move(node_of(*node).value);
    }
    return result;
  }

  internal::DelayMapCore core_;
};

}  // namespace detent
