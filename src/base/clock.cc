#include "detent/clock.h"

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "detent/check.h"
#include "detent/internal/machine_time.h"

namespace detent {

// ---- Doorbell -----------------------------------------------------------------------------------

struct Doorbell::State {
  explicit State(Ringer rings) noexcept : ringer(rings) {}

  const Ringer ringer;
  Mutex mu;
  CondVar changed;
  bool rung DETENT_GUARDED_BY(mu) = false;
  // ManualClock sets these two: whether a thread waits, and the time that the thread waits for.
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
  // Notify while the lock is held. Once the lock is released, the waiting thread may return, and
  // its owner may destroy the doorbell.
  state_->changed.notify_one();
}

// ---- SystemClock --------------------------------------------------------------------------------

namespace {

std::chrono::steady_clock::time_point to_steady(MonotonicTime time) {
  return std::chrono::steady_clock::time_point{time.time_since_epoch()};
}

/// The kernel may end a sleep late by the timer slack of the thread, which is 50 us by default.
/// This asks for 1 ns, once per thread. If the kernel refuses, sleeps are only less exact. Other
/// systems have no such setting.
void use_finest_timer_slack() {
#if defined(__linux__)
  thread_local const bool once = [] {
    ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    return true;
  }();
  static_cast<void>(once);
#endif
}

}  // namespace

MonotonicTime SystemClock::now() const noexcept { return internal::machine_time(); }
WallInstant SystemClock::wall_now() const noexcept { return internal::machine_wall_time(); }

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
// A waiting thread adds its doorbell to `bells`, so that `advance` can wake the thread. The thread
// then sleeps on the doorbell's own condition variable, which `ring` also notifies. The order of
// locks is: clock first, then doorbell.
//
// A wake-up cannot be lost. While `advance` holds `mu`, it sets the time and then notifies each
// doorbell in `bells`, with the lock of the doorbell held. A thread that adds its doorbell later
// sees the new time. A thread that checks the time after `advance` has released the lock of its
// doorbell also sees the new time.

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
  // Written under `mu`, and read by any thread without it: a waiting thread reads the time while it
  // holds the lock of its doorbell, and must not lock `mu` after that. Sequentially consistent,
  // because this clock is only for tests, where speed does not matter.
  std::atomic<std::int64_t> now_ns{0};
  std::atomic<std::int64_t> wall_ns{0};

  MonotonicTime now() const noexcept {
    return MonotonicTime{std::chrono::nanoseconds{now_ns.load()}};
  }

  /// True if a thread sleeps on `bell` and has no reason to wake up: no ring, and its time has not
  /// come. A thread that waits for work of another thread never counts as idle.
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
