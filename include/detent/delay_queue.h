// DelayQueue: a blocking queue between threads whose elements come out when their delay has passed.
//
//     detent::DelayQueue<Order> unpaid;
//     unpaid.push(std::move(order), 30min);                       // any thread
//     while (std::optional<Order> order = unpaid.pop()) {         // any threads
//       cancel_if_unpaid(*order);
//     }
//     unpaid.close();                                             // ends the loops above
//
// Promises. An element is handed out once, and never before its deadline by the clock given. Of the
// elements that are due the one with the earliest deadline comes first, equal ones in the order in
// which they were pushed. A consumer that waits wakes when an earlier element arrives. One element
// wakes one consumer, however many wait, and while all wait only the one at the head of their line
// has an alarm set. An element that was handed out or refused is not kept anywhere.
//
// The end. After `close` pushing is refused, but what is in the queue still comes out, each at its
// own time; when nothing is left `pop` returns nothing. To end at once, take the rest out as well:
//
//     unpaid.close();
//     std::vector<detent::Delayed<Order>> left = unpaid.take_all();   // keep it or drop it
//
// Time. Delays are measured on the monotonic clock. A delay that is not positive is due at once,
// one that is longer than time is never due.
//
// Exceptions. Elements are moved and destroyed without the queue's lock. A move that throws while
// an element goes in leaves the queue as it was. One that throws while an element comes out loses
// that element (with take_all, all it took); the queue goes on working.
//
// The idea, a line of consumers of whom only the first waits for the clock, is the leader-follower
// pattern (Schmidt and others, POSA 2, 2000), as in java.util.concurrent.DelayQueue.
// Read next: src/runtime/delay_queue.cc (why no wake-up is lost).
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

struct DelayQueueOptions {
  /// How many elements it holds at most, due or not; the default is no limit but memory.
  /// Requires: at least 1.
  std::size_t capacity = std::numeric_limits<std::size_t>::max();
  /// Null: the machine's clock. Otherwise it must outlive the queue.
  Clock* clock = nullptr;
};

/// What became of an element that was offered.
enum class PushResult : std::uint8_t {
  pushed,
  full,    // refused: there was no room (in time)
  closed,  // refused: the queue takes no more
};

/// An element that was taken out before its time, and when that would have been.
template <class T>
struct Delayed {
  MonotonicTime deadline;
  T value;
};

namespace internal {

/// Holds one element of whatever type.
class DelayNode {
 public:
  DelayNode() = default;
  virtual ~DelayNode() = default;
  DelayNode(const DelayNode&) = delete;
  DelayNode& operator=(const DelayNode&) = delete;
};

/// All of a DelayQueue but the type of its elements; src/runtime/delay_queue.cc. Thread-safe.
class DelayQueueCore {
 public:
  explicit DelayQueueCore(const DelayQueueOptions& options);
  ~DelayQueueCore();
  DelayQueueCore(const DelayQueueCore&) = delete;
  DelayQueueCore& operator=(const DelayQueueCore&) = delete;

  MonotonicTime now() const noexcept;

  /// Takes `node` if it returns `pushed`, and else leaves it. Waits for room, at most until
  /// `give_up` (max: for ever).
  PushResult push(std::unique_ptr<DelayNode>& node, MonotonicTime deadline, MonotonicTime give_up);
  /// Returns: the first element that is due, waiting for one at most until `give_up`. Null: none.
  std::unique_ptr<DelayNode> pop(MonotonicTime give_up);
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

/// Thread-safe. `push` and `pop` hold one lock for O(log size()). A push allocates once, for its
/// element (std::bad_alloc: nothing was pushed), and so does each call that waits. Running out of
/// memory for the heap's array, 24 bytes an element, ends the process.
/// Requires: std::movable<T>, checked where a queue is made, so that T may be incomplete until then
/// and its members may point at its queue.
template <class T>
class DelayQueue {
 public:
  explicit DelayQueue(const DelayQueueOptions& options = {}) : core_(options) {
    static_assert(std::movable<T>,
                  "elements of a DelayQueue are moved in and out: T must be std::movable");
  }
  /// Destroys what is left. Requires: no thread is inside a call.
  ~DelayQueue() = default;
  DelayQueue(const DelayQueue&) = delete;
  DelayQueue& operator=(const DelayQueue&) = delete;

  /// Puts `value` in, to come out `delay` from now. Waits for room while the queue is full; the
  /// delay counts from the call. Here and in the three below a T given as an rvalue is moved back
  /// to its owner when it is refused. Returns: `pushed` or `closed`.
  template <class Rep, class Period, class U = T>
  requires std::constructible_from<T, U> PushResult push(U&& value,
                                                         std::chrono::duration<Rep, Period> delay) {
    return insert(std::forward<U>(value), after(delay), MonotonicTime::max());
  }

  /// The same for an instant; one that has passed is due at once.
  template <class U = T>
  requires std::constructible_from<T, U> PushResult push_at(U&& value, MonotonicTime deadline) {
    return insert(std::forward<U>(value), deadline, MonotonicTime::max());
  }

  /// Like push, but does not wait: `full` when there is no room.
  template <class Rep, class Period, class U = T>
  requires std::constructible_from<T, U>
  [[nodiscard]] PushResult try_push(U&& value, std::chrono::duration<Rep, Period> delay) {
    return insert(std::forward<U>(value), after(delay), MonotonicTime::min());
  }

  /// Like push, but waits at most `timeout`: `full` when there was no room until then.
  template <class Rep1, class Period1, class Rep2, class Period2, class U = T>
  requires std::constructible_from<T, U>
  [[nodiscard]] PushResult push_for(std::chrono::duration<Rep1, Period1> timeout, U&& value,
                                    std::chrono::duration<Rep2, Period2> delay) {
    return insert(std::forward<U>(value), after(delay), after(timeout));
  }

  /// Takes out the first element that is due, waiting until there is one.
  /// Returns: nothing when the queue is closed and nothing is left to come.
  std::optional<T> pop() { return take(MonotonicTime::max()); }

  /// Like pop, but also returns nothing when no element was due until then. To tell the two apart:
  /// `is_closed() && empty()`, in this order, means that there will never be another.
  template <class Rep, class Period>
  std::optional<T> pop_for(std::chrono::duration<Rep, Period> timeout) {
    return take(after(timeout));
  }
  std::optional<T> pop_until(MonotonicTime give_up) { return take(give_up); }

  /// Takes out the first element that is due now, if any. Does not wait.
  std::optional<T> try_pop() { return take(MonotonicTime::min()); }

  /// Takes out all elements, due or not, in the order in which they would have come. O(n log n).
  std::vector<Delayed<T>> take_all() {
    auto nodes = core_.take_all();
    std::vector<Delayed<T>> taken;
    taken.reserve(nodes.size());
    for (auto& node : nodes) {
      taken.push_back({node.deadline, std::move(value_of(*node.value))});
    }
    return taken;
  }

  /// Refuses what is pushed from now on and what waits for room. What is in the queue still comes
  /// out at its time. Idempotent.
  void close() noexcept { core_.close(); }

  bool is_closed() const noexcept { return core_.is_closed(); }
  /// How many elements it holds, due or not; perhaps no longer true when the caller looks.
  std::size_t size() const noexcept { return core_.size(); }
  bool empty() const noexcept { return size() == 0; }

  /// For tests: for how many elements there is memory; it halves when a quarter of it is used.
  std::size_t allocated() const noexcept { return core_.allocated(); }
  /// For tests: stops the process unless the invariants of the core hold. O(n) under the lock.
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
    if constexpr (std::is_same_v<U, T>) {  // not a U&: it was given as an rvalue
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
