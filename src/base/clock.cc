#include "detent/clock.h"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "detent/check.h"

namespace detent {

// ---- Doorbell -----------------------------------------------------------------------------------

struct Doorbell::State {
  explicit State(Ringer rings) noexcept : ringer(rings) {}

  const Ringer ringer;
  Mutex mu;
  CondVar changed;
  bool rung DETENT_GUARDED_BY(mu) = false;
  // Only ManualClock uses these two: whether a thread waits, and what time it waits for.
  bool waiting DETENT_GUARDED_BY(mu) = false;
  std::optional<MonotonicTime> until DETENT_GUARDED_BY(mu);

  bool take_ring() DETENT_REQUIRES(mu) { return std::exchange(rung, false); }
};

Doorbell::Doorbell() : Doorbell(Ringer::others) {}
Doorbell::Doorbell(Ringer ringer) : state_(std::make_unique<State>(ringer)) {}
Doorbell::~Doorbell() = default;

void Doorbell::ring() noexcept {
  MutexLock lock(state_->mu);
  state_->rung = true;
  // Under the lock: once it is released the waiter may return and its owner destroy the bell.
  state_->changed.notify_one();
}

// ---- SystemClock --------------------------------------------------------------------------------

namespace {

std::chrono::steady_clock::time_point to_steady(MonotonicTime time) {
  return std::chrono::steady_clock::time_point{time.time_since_epoch()};
}

/// The kernel may end a sleep late by a thread's timer slack, 50 us unless told otherwise. Asks for
/// 1 ns, once a thread. Where that is refused, sleeps are only less exact.
void use_finest_timer_slack() {
  thread_local const bool once = [] {
    ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

MonotonicTime SystemClock::now() const noexcept {
  return MonotonicTime{std::chrono::steady_clock::now().time_since_epoch()};
}

WallInstant SystemClock::wall_now() const noexcept {
  return WallInstant{std::chrono::system_clock::now().time_since_epoch()};
}

bool SystemClock::wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept {
  use_finest_timer_slack();
  Doorbell::State& state = *bell.state_;
  MutexLock lock(state.mu);
  while (!state.rung) {
    if (!until) {
      state.changed.wait(state.mu);
    } else if (now() >= *until) {
      return false;
    } else {
      state.changed.wait_until(state.mu, to_steady(*until));
    }
  }
  return state.take_ring();
}

// ---- ManualClock --------------------------------------------------------------------------------
//
// A waiter enters its bell in `bells`, so that `advance` can wake it, and sleeps on the bell's own
// condition, where a ring finds it. Locks are taken in the order clock, bell. A wake-up cannot be
// lost: `advance` sets the time and notifies every entered bell under `mu`, the bell's lock around
// each notification; a waiter that entered later, or that looks at the time after that lock was
// released, sees the new time.

namespace {

std::int64_t saturating_sum(std::int64_t a, std::int64_t b) noexcept {
  using Limits = std::numeric_limits<std::int64_t>;
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? Limits::max() : Limits::min();
}

}  // namespace

struct ManualClock::State {
  mutable Mutex mu;
  mutable CondVar waiter_entered;
  std::vector<Doorbell::State*> bells DETENT_GUARDED_BY(mu);
  // Written under `mu`; read by anybody without it, so that a waiter can look while it holds its
  // bell's lock, which comes after `mu`. Sequentially consistent: tests only, speed is no matter.
  std::atomic<std::int64_t> now_ns{0};
  std::atomic<std::int64_t> wall_ns{0};

  MonotonicTime now() const noexcept {
    return MonotonicTime{std::chrono::nanoseconds{now_ns.load()}};
  }

  static bool is_idle(Doorbell::State& bell, MonotonicTime now) {
    if (bell.ringer == Doorbell::Ringer::work) return false;
    MutexLock lock(bell.mu);
    return bell.waiting && !bell.rung && (!bell.until || *bell.until > now);
  }

  int count_idle() const DETENT_REQUIRES(mu) {
    return static_cast<int>(
        std::count_if(bells.begin(), bells.end(),
                      [at = now()](Doorbell::State* bell) { return is_idle(*bell, at); }));
  }

  void enter(Doorbell::State& bell, std::optional<MonotonicTime> until) {
    MutexLock lock(mu);
    {
      MutexLock bell_lock(bell.mu);
      DETENT_CHECK(!bell.waiting);
      bell.waiting = true;
      bell.until = until;
    }
    bells.push_back(&bell);
    waiter_entered.notify_all();
  }

  void leave(Doorbell::State& bell) {
    MutexLock lock(mu);
    std::erase(bells, &bell);
  }
};

ManualClock::ManualClock(WallInstant wall) : state_(std::make_unique<State>()) {
  state_->wall_ns = wall.time_since_epoch().count();
}
ManualClock::~ManualClock() = default;

MonotonicTime ManualClock::now() const noexcept { return state_->now(); }

WallInstant ManualClock::wall_now() const noexcept {
  return WallInstant{std::chrono::nanoseconds{state_->wall_ns.load()}};
}

bool ManualClock::wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept {
  Doorbell::State& state = *bell.state_;
  state_->enter(state, until);
  bool took_ring = false;
  {
    MutexLock lock(state.mu);
    while (!state.rung && !(until && now() >= *until)) state.changed.wait(state.mu);
    state.waiting = false;
    took_ring = state.take_ring();
  }
  state_->leave(state);
  return took_ring;
}

void ManualClock::advance(std::chrono::nanoseconds delta) {
  DETENT_CHECK(delta >= std::chrono::nanoseconds::zero());
  MutexLock lock(state_->mu);
  state_->now_ns = saturating_sum(state_->now_ns, delta.count());
  state_->wall_ns = saturating_sum(state_->wall_ns, delta.count());
  for (Doorbell::State* bell : state_->bells) {
    MutexLock bell_lock(bell->mu);
    bell->changed.notify_one();
  }
}

void ManualClock::step_wall(std::chrono::nanoseconds delta) {
  MutexLock lock(state_->mu);
  state_->wall_ns = saturating_sum(state_->wall_ns, delta.count());
}

void ManualClock::await_waiters(int count) const {
  MutexLock lock(state_->mu);
  while (state_->count_idle() < count) state_->waiter_entered.wait(state_->mu);
}

}  // namespace detent
