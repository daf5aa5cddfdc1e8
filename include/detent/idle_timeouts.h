// IdleTimeouts: tells of connections on which nothing has happened for a while, and costs them one
// store per event.
//
//     detent::IdleTimeouts idle(scheduler, {.timeout = 60s, .on_idle = close_connection});
//     detent::IdleTimeouts::Connection c = idle.add(id);     // as long as this lives
//     c.refresh();                                           // there was traffic
//     c.refresh(now);                                        // the same, the present being known
//
// Promises. on_idle(id) is called once, on the scheduler's executor, when the connection has not
// been refreshed for its timeout, and never earlier. It is not called once `remove` has answered
// `cancelled` or `not_pending`, nor after `remove_and_wait`.
//
// A refresh takes no lock and touches no wheel: it stores the time. When the connection's timer
// fires, it looks at what was stored, and if there was traffic meanwhile goes on to the time-out
// counted from that: one look a timeout, however many refreshes. All connections share one wheel
// and one timer of the scheduler, set for the next wake-up.
//
// Memory: 32 bytes a connection, 22 in the wheel, and the handle's 24; for a million about 80 MB.
//
// Sources: timers that are set often and hardly ever expire, and the wheel for them, are Varghese
// and Lauck's (SOSP 1987); postponing by a time stamp that is looked at on expiry is what network
// stacks do (the keep-alive timer of 4.4BSD, Netty's IdleStateHandler).
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

struct IdleTimeoutsOptions {
  /// How long a connection may be idle unless `add` says otherwise. One that is not positive has
  /// passed at once, one that is longer than time never does.
  std::chrono::nanoseconds timeout{};
  /// Called with the id of a connection that is idle, without a lock, one call at a time: it may
  /// add, refresh and remove, this connection too. Must not throw. Requires: not empty.
  std::function<void(std::uint64_t id)> on_idle;
  /// Wake-ups are rounded up to multiples of this, so on_idle comes up to so much later, and
  /// connections whose times are close together cost one wake-up. Requires: positive.
  std::chrono::nanoseconds resolution = std::chrono::milliseconds{10};
};

namespace internal {

class IdleTimeoutsCore;

/// A connection as the core keeps it, at an address that stays.
struct IdleConnection {
  enum class State : std::uint8_t {
    waiting,  // in the wheel
    due,      // out of the wheel; on_idle is to be called
    over,     // on_idle has been called, or is running
  };

  std::uint32_t index;           // in the slab and in the wheel
  State state = State::waiting;  // guarded by the core's lock; the rest but for the activity too
  // When it was last refreshed. Written by whoever refreshes, read when the timer fires; relaxed,
  // because no other data hangs on it, and a mutex would cost more than the rest of a refresh.
  std::atomic<MonotonicTime> last_activity = MonotonicTime();
  std::chrono::nanoseconds timeout{};
  std::uint64_t id = 0;
};
static_assert(sizeof(IdleConnection) == 32);
static_assert(std::atomic<MonotonicTime>::is_always_lock_free);

}  // namespace internal

/// Thread-safe.
class IdleTimeouts {
 public:
  class Connection;

  /// The scheduler must outlive it, and may stop before; then nothing is told of any more.
  IdleTimeouts(Scheduler& scheduler, IdleTimeoutsOptions options);
  /// Waits for an on_idle that runs; none is called any more. Connections may outlive it.
  /// Requires: not called from inside on_idle; no thread is inside a call. In a child process of
  /// fork() it returns at once.
  ~IdleTimeouts();
  IdleTimeouts(const IdleTimeouts&) = delete;
  IdleTimeouts& operator=(const IdleTimeouts&) = delete;

  /// Watches a connection, as long as what it returns lives. It counts as refreshed now. `id` is
  /// the caller's; nobody minds two of the same. O(1); memory grows by chunks of 64 connections.
  Connection add(std::uint64_t id);
  /// The same with a timeout of its own.
  template <class Rep, class Period>
  Connection add(std::uint64_t id, std::chrono::duration<Rep, Period> timeout);

  /// How many connections there are, those that were told of included.
  std::size_t size() const noexcept;

  /// For tests: stops the process unless the invariants of the core hold. O(n) under the lock.
  void check_invariants() const noexcept;

 private:
  Connection add_ns(std::uint64_t id, std::chrono::nanoseconds timeout);

  const std::chrono::nanoseconds timeout_;
  // Owned by this and by the connections, so that a connection may outlive this.
  std::shared_ptr<internal::IdleTimeoutsCore> core_;
};

/// One connection that is watched; destroying it removes it. Movable. Thread-compatible, but for
/// `refresh`: any threads may call it at once (the later store wins, by however little).
class [[nodiscard]] IdleTimeouts::Connection {
 public:
  /// Watches nothing; every operation answers so or does nothing.
  Connection() noexcept = default;
  /// Removes, and does not wait for an on_idle that runs (see remove_and_wait).
  ~Connection();
  Connection(Connection&& other) noexcept;
  /// Removes what this one watched.
  Connection& operator=(Connection&& other) noexcept;

  /// Records traffic: the timeout counts from now. Does nothing once on_idle is about to be called,
  /// after `remove`, and when the IdleTimeouts is gone. To watch the connection again after
  /// on_idle, add it again. One look at the clock and one store.
  void refresh() noexcept;
  /// The same for an instant that the caller has read from the scheduler's clock. One store.
  /// Requires: no earlier than the one before; otherwise it may be told of that much late.
  void refresh(MonotonicTime now) noexcept {
    if (connection_ == nullptr) return;
    connection_->last_activity.store(now, std::memory_order_relaxed);
  }

  /// Ends the watch; this one watches nothing afterwards. Returns: `cancelled` when on_idle will
  /// not be called; `running` when it is being called; `not_pending` when that is over, when the
  /// IdleTimeouts is gone or there was nothing to remove.
  CancelResult remove() noexcept;
  /// The same, and waits for an on_idle that runs. Called from inside on_idle it does not wait.
  CancelResult remove_and_wait() noexcept;

  /// Whether it watches one, told of or not.
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
