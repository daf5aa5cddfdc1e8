// IdleTimeouts: reports connections that had no traffic for their timeout. Each event of traffic
// costs one store to memory.
//
//     detent::IdleTimeouts idle(scheduler, {.timeout = 60s, .on_idle = close_connection});
//     detent::IdleTimeouts::Connection c = idle.add(id);     // watched while c lives
//     c.refresh();                                           // there was traffic
//     c.refresh(now);                                        // same, if you have read the clock
//
// Guarantees. on_idle(id) is called once, on the scheduler's executor, if the connection was not
// refreshed for its timeout. It is never called earlier. It is not called after `remove` has
// returned `cancelled` or `not_pending`, nor after `remove_and_wait` has returned.
//
// A refresh takes no lock and does not touch the wheel: it only stores the time. When the timer of
// a connection fires, the timer reads the stored time. If there was traffic, the timer moves to the
// timeout counted from the last traffic. This costs one check per timeout, for any number of
// refreshes. All connections share one wheel and one timer of the scheduler, which is set to the
// next wake-up.
//
// Memory per connection: 32 bytes, 22 bytes in the wheel, and 24 bytes for the handle; about 80 MB
// for a million connections.
//
// Sources: Varghese and Lauck (SOSP 1987) describe timers that are set often and rarely expire, and
// the wheel for them. Network stacks postpone timers by a time stamp that is read on expiry: the
// keep-alive timer of 4.4BSD, and Netty's IdleStateHandler.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "detent/clock.h"
#include "detent/internal/saturate.h"
#include "detent/timer_handle.h"

namespace detent {

class Scheduler;

/// Options of IdleTimeouts.
struct IdleTimeoutsOptions {
  /// The longest idle time of a connection, unless `add` sets another. Always set one of the two: a
  /// timeout of 0 (the default) or less has passed immediately, so the connection is reported soon
  /// after `add`. A timeout beyond the end of the clock never passes.
  std::chrono::nanoseconds timeout{};
  /// Called with the id of each idle connection, without a lock, one call at a time. It may add,
  /// refresh and remove connections, including this connection. It must not throw. Requires: not
  /// empty.
  std::function<void(std::uint64_t id)> on_idle;
  /// Wake-ups are rounded up to multiples of this. on_idle can be later by this duration, and
  /// connections with close deadlines cost only one wake-up. Requires: above 0.
  std::chrono::nanoseconds resolution = std::chrono::milliseconds{10};
};

namespace internal {

class IdleTimeoutsCore;

/// A connection in the core. Its address does not change.
struct IdleConnection {
  enum class State : std::uint8_t {
    waiting,  // in the wheel
    due,      // removed from the wheel; on_idle will be called
    over,     // on_idle has been called, or is running
  };

  std::uint32_t index;           // index in the slab and in the wheel
  State state = State::waiting;  // guarded by the core's lock, as all but last_activity
  // The time of the last refresh. Any thread writes it; it is read when the timer fires. The order
  // is relaxed, because no other data depends on it. A mutex would cost more than the rest of a
  // refresh.
  std::atomic<MonotonicTime> last_activity = MonotonicTime();
  std::chrono::nanoseconds timeout{};
  std::uint64_t id = 0;
};
static_assert(sizeof(void*) != 8 || sizeof(IdleConnection) == 32);
static_assert(std::atomic<MonotonicTime>::is_always_lock_free);

}  // namespace internal

/// Watches connections for inactivity. Thread-safe.
class IdleTimeouts {
 public:
  class Connection;

  /// Starts to watch. Requires: `scheduler` outlives this object. If the scheduler stops earlier,
  /// idle connections are no longer reported.
  IdleTimeouts(Scheduler& scheduler, IdleTimeoutsOptions options);
  /// Waits for a running on_idle; on_idle is not called again. Connections may outlive this object.
  /// In a child process of fork() it returns immediately. Requires: not called from inside on_idle;
  /// no thread is inside a call.
  ~IdleTimeouts();
  IdleTimeouts(const IdleTimeouts&) = delete;
  IdleTimeouts& operator=(const IdleTimeouts&) = delete;

  /// Watches a connection as long as the returned handle lives. The connection counts as refreshed
  /// now. The caller chooses `id`; ids need not be unique. Cost: O(1); memory grows by chunks of 64
  /// connections.
  Connection add(std::uint64_t id);
  /// As above, with a timeout for this connection.
  template <class Rep, class Period>
  Connection add(std::uint64_t id, std::chrono::duration<Rep, Period> timeout);

  /// Returns the number of connections whose handles exist, including connections that were
  /// reported to on_idle.
  std::size_t size() const noexcept;

  /// For tests: stops the process if an invariant of the core is broken. O(n) under the lock.
  void check_invariants() const noexcept;

 private:
  Connection add_ns(std::uint64_t id, std::chrono::nanoseconds timeout);

  const std::chrono::nanoseconds timeout_;
  // Shared with the connections, so that a connection may outlive this object.
  std::shared_ptr<internal::IdleTimeoutsCore> core_;
};

/// The handle of a watched connection; destroying it removes the connection. Movable.
/// Thread-compatible, except that any threads may call `refresh` in parallel. If two refreshes
/// overlap, the later store wins; the difference is tiny.
class [[nodiscard]] IdleTimeouts::Connection {
 public:
  /// Watches no connection. Every function reports this or has no effect.
  Connection() noexcept = default;
  /// Removes the connection. Does not wait for a running on_idle; see remove_and_wait.
  ~Connection();
  Connection(Connection&& other) noexcept;
  /// Removes the connection that this handle watched.
  Connection& operator=(Connection&& other) noexcept;

  /// Records traffic: the timeout counts from now. Has no effect once on_idle is about to be
  /// called, after `remove`, and after the end of the IdleTimeouts. To watch the connection again
  /// after on_idle, add it again. Cost: one reading of the clock and one store.
  void refresh() noexcept;
  /// Records traffic at an instant that the caller has read from the scheduler's clock. Cost: one
  /// store. Otherwise as above. Requires: `now` is not earlier than in the previous call, and not
  /// later than the clock. Otherwise on_idle can be too early or too late by the difference.
  void refresh(MonotonicTime now) noexcept {
    if (connection_ == nullptr) return;
    connection_->last_activity.store(now, std::memory_order_relaxed);
  }

  /// Stops watching; the handle is empty afterwards. Returns `cancelled` if on_idle will not be
  /// called, and `running` if on_idle is running. Returns `not_pending` if on_idle has returned, if
  /// the IdleTimeouts no longer exists, or if the handle was empty.
  CancelResult remove() noexcept;
  /// As remove, and waits for a running on_idle. Called from inside on_idle, it does not wait.
  CancelResult remove_and_wait() noexcept;

  /// Returns true if the handle holds a connection, reported or not.
  explicit operator bool() const noexcept { return connection_ != nullptr; }

 private:
  friend class internal::IdleTimeoutsCore;
  Connection(std::shared_ptr<internal::IdleTimeoutsCore> core,
             internal::IdleConnection& connection) noexcept;

  std::shared_ptr<internal::IdleTimeoutsCore> core_;
  internal::IdleConnection* connection_ = nullptr;
};

template <class Rep, class Period>
IdleTimeouts::Connection IdleTimeouts::add(std::uint64_t id,
                                           std::chrono::duration<Rep, Period> timeout) {
  return add_ns(id, internal::saturate_to_nanoseconds(timeout));
}

}  // namespace detent
