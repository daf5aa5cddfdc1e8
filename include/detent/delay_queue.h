// DelayQueue: a blocking queue between threads. Each element comes out after its delay.
//
//     detent::DelayQueue<Order> unpaid;
//     unpaid.push(std::move(order), 30min);                       // any thread
//     while (std::optional<Order> order = unpaid.pop()) {         // any threads
//       cancel_if_unpaid(*order);
//     }
//     unpaid.close();                  // in another thread: when the queue is empty, the loops end
//
// Guarantees. An element is handed out once, and never before its deadline on the given clock. Due
// elements come out by deadline, the earliest first. Elements with equal deadlines come out in the
// order of their pushes. A waiting consumer wakes if an earlier element arrives. One due element
// wakes one consumer, however many wait: only the first consumer in line sets an alarm. The queue
// keeps no copy of an element that it handed out or refused.
//
// The end. After `close`, the queue refuses new elements. Elements in the queue still come out,
// each at its own time. When the queue is empty, `pop` returns std::nullopt. To end immediately,
// remove the remaining elements too:
//
//     unpaid.close();
//     std::vector<detent::Delayed<Order>> left = unpaid.take_all();   // keep it or drop it
//
// Time. Delays are measured on the monotonic clock. A delay of 0 or less is due immediately. A
// delay beyond the end of the clock is never due.
//
// Exceptions. Elements are moved and destroyed without the queue's lock. If a move throws while an
// element goes in, the queue does not change. If a move throws while an element comes out, this
// element is lost (in take_all: all elements that the call removed). The queue continues to work.
//
// Source: the leader-follower pattern (Schmidt and others, POSA 2, 2000), as in
// java.util.concurrent.DelayQueue. Consumers form a line, and only the first of them waits for the
// clock. Read next: src/runtime/collections/delay_queue.cc, which shows why no wake-up is lost.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "detent/clock.h"
#include "detent/internal/saturate.h"

namespace detent {

/// Options of a DelayQueue.
struct DelayQueueOptions {
  /// The largest number of elements, due or not. By default only memory limits it. Requires: at
  /// least 1.
  std::size_t capacity = std::numeric_limits<std::size_t>::max();
  /// Null: the machine's clock. Otherwise the clock must outlive the queue.
  Clock* clock = nullptr;
};

/// The result of offering an element to the queue.
enum class PushResult : std::uint8_t {
  pushed,
  full,    // refused: the queue was full (until the time limit, if any)
  closed,  // refused: the queue is closed
};

/// An element that was removed early, and its deadline.
template <class T>
struct Delayed {
  MonotonicTime deadline;
  T value;
};

namespace internal {

/// Holds one element of any type.
class DelayNode {
 public:
  DelayNode() = default;
  virtual ~DelayNode() = default;
  DelayNode(const DelayNode&) = delete;
  DelayNode& operator=(const DelayNode&) = delete;
};

/// The part of DelayQueue that does not depend on the element type;
/// src/runtime/collections/delay_queue.cc. Thread-safe.
class DelayQueueCore {
 public:
  explicit DelayQueueCore(const DelayQueueOptions& options);
  ~DelayQueueCore();
  DelayQueueCore(const DelayQueueCore&) = delete;
  DelayQueueCore& operator=(const DelayQueueCore&) = delete;

  MonotonicTime now() const noexcept;

  /// Inserts an element. Takes `node` only if the result is `pushed`. Waits for room until
  /// `give_up` at the latest (max: without a limit).
  PushResult push(std::unique_ptr<DelayNode>& node, MonotonicTime deadline, MonotonicTime give_up);
  /// Waits for a due element until `give_up` at the latest. Returns the first due element, or null.
  std::unique_ptr<DelayNode> pop(MonotonicTime give_up);
  /// Removes all elements, due or not, in their order.
  std::vector<Delayed<std::unique_ptr<DelayNode>>> take_all();
  void close() noexcept;

  bool is_closed() const noexcept;
  std::size_t size() const noexcept;
  std::size_t allocated() const noexcept;
  void check_invariants() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace internal

/// A blocking queue ordered by deadline. Thread-safe.
///
/// Cost: `push` and `pop` hold one lock for O(log size()). Each push makes one allocation, for its
/// element. If this allocation throws std::bad_alloc, the queue does not change. Each call that
/// waits also makes one allocation. The heap's array takes 24 bytes per element. If the array
/// cannot grow, the process ends.
///
/// Requires: std::movable<T>, checked where a queue is constructed. T may be incomplete before
/// that, so a member of T can point to its queue.
template <class T>
class DelayQueue {
 public:
  /// Makes an empty queue.
  explicit DelayQueue(const DelayQueueOptions& options = {}) : core_(options) {
    static_assert(std::movable<T>,
                  "elements of a DelayQueue are moved in and out: T must be std::movable");
  }
  /// Destroys the remaining elements. Requires: no thread is inside a call.
  ~DelayQueue() = default;
  DelayQueue(const DelayQueue&) = delete;
  DelayQueue& operator=(const DelayQueue&) = delete;

  /// Inserts `value`, which comes out `delay` after this call. While the queue is full, waits for
  /// room; the wait does not extend the delay. If an insertion function refuses a T given as an
  /// rvalue, it moves the T back to the caller. Returns: `pushed` or `closed`.
  template <class Rep, class Period, class U = T>
  requires std::constructible_from<T, U> PushResult push(U&& value,
                                                         std::chrono::duration<Rep, Period> delay) {
    return insert(std::forward<U>(value), after(delay), MonotonicTime::max());
  }

  /// Inserts `value` with an absolute deadline; a deadline in the past is due immediately.
  /// Otherwise as push.
  template <class U = T>
  requires std::constructible_from<T, U> PushResult push_at(U&& value, MonotonicTime deadline) {
    return insert(std::forward<U>(value), deadline, MonotonicTime::max());
  }

  /// Like push, but never waits. Returns `full` if the queue has no room.
  template <class Rep, class Period, class U = T>
  requires std::constructible_from<T, U>
  [[nodiscard]] PushResult try_push(U&& value, std::chrono::duration<Rep, Period> delay) {
    return insert(std::forward<U>(value), after(delay), MonotonicTime::min());
  }

  /// Like push, but waits for at most `timeout`. Returns `full` if the queue had no room in this
  /// time.
  template <class Rep1, class Period1, class Rep2, class Period2, class U = T>
  requires std::constructible_from<T, U>
  [[nodiscard]] PushResult push_for(std::chrono::duration<Rep1, Period1> timeout, U&& value,
                                    std::chrono::duration<Rep2, Period2> delay) {
    return insert(std::forward<U>(value), after(delay), after(timeout));
  }

  /// Removes and returns the first due element; waits until an element is due. Returns std::nullopt
  /// if the queue is closed and empty.
  std::optional<T> pop() { return take(MonotonicTime::max()); }

  /// Like pop, but waits for at most `timeout`. Returns std::nullopt if no element became due in
  /// this time, or if the queue is closed and empty. To tell the two cases apart, check
  /// `is_closed() && empty()` in this order: true means that no further element will come.
  template <class Rep, class Period>
  std::optional<T> pop_for(std::chrono::duration<Rep, Period> timeout) {
    return take(after(timeout));
  }
  /// As pop_for, but waits until the instant `give_up`.
  std::optional<T> pop_until(MonotonicTime give_up) { return take(give_up); }

  /// Removes and returns the first due element. Returns std::nullopt if no element is due. Never
  /// waits.
  std::optional<T> try_pop() { return take(MonotonicTime::min()); }

  /// Removes all elements, due or not, and returns them in the order of their deadlines. O(n log
  /// n).
  std::vector<Delayed<T>> take_all() {
    auto nodes = core_.take_all();
    std::vector<Delayed<T>> taken;
    taken.reserve(nodes.size());
    for (auto& node : nodes) {
      taken.push_back({node.deadline, std::move(value_of(*node.value))});
    }
    return taken;
  }

  /// Closes the queue: refuses later pushes and pushes that wait for room. Elements in the queue
  /// still come out at their time. Idempotent.
  void close() noexcept { core_.close(); }

  /// Returns true after close().
  bool is_closed() const noexcept { return core_.is_closed(); }
  /// Returns the number of elements, due or not. Other threads can change it before the caller uses
  /// it.
  std::size_t size() const noexcept { return core_.size(); }
  /// Returns size() == 0.
  bool empty() const noexcept { return size() == 0; }

  /// For tests: the number of elements for which memory is allocated. When only a quarter of this
  /// memory is in use, half of it is freed.
  std::size_t allocated() const noexcept { return core_.allocated(); }
  /// For tests: stops the process if an invariant of the core is broken. O(n) under the lock.
  void check_invariants() const noexcept { core_.check_invariants(); }

 private:
  using NodePointer = std::unique_ptr<internal::DelayNode>;

  struct Node final : internal::DelayNode {
    template <class U>
    explicit Node(U&& from) : value(std::forward<U>(from)) {}
    T value;
  };

  static T& value_of(internal::DelayNode& node) { return static_cast<Node&>(node).value; }

  template <class Rep, class Period>
  MonotonicTime after(std::chrono::duration<Rep, Period> delay) const noexcept {
    return internal::saturating_add(core_.now(), internal::saturate_to_nanoseconds(delay));
  }

  template <class U>
  PushResult insert(U&& value, MonotonicTime deadline, MonotonicTime give_up) {
    NodePointer node = std::make_unique<Node>(std::forward<U>(value));
    const PushResult result = core_.push(node, deadline, give_up);
    if constexpr (std::is_same_v<U, T>) {  // not a reference: the value was an rvalue
      if (node != nullptr) value = std::move(value_of(*node));
    }
    return result;
  }

  std::optional<T> take(MonotonicTime give_up) {
    const NodePointer node = core_.pop(give_up);
    if (node == nullptr) return std::nullopt;
    return std::optional<T>(std::move(value_of(*node)));
  }

  internal::DelayQueueCore core_;
};

}  // namespace detent
