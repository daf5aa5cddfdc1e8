#include "runtime/collections/wakeup_timer.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/home_process.h"
#include "base/mutex.h"
#include "detent/check.h"
#include "runtime/scheduler/scheduler_impl.h"

namespace detent::internal {

/// Thread-safe.
///
/// Invariants, whenever the lock is free:
///  1. If the owner is not running, the timer is not being scheduled and the object is not closed,
///     the timer is set for the earliest time that was requested since the last wake-up began:
///     wanted_ >= set_for_.
///  2. At most one thread is inside `schedule_at` (arming_), and at most one in `on_wakeup`.
///  3. `timer_` is the handle of the pending or running timer, if there is one. It is set when the
///     thread that scheduled the timer has finished.
class WakeupTimer::State : public std::enable_shared_from_this<State> {
 public:
  State(Scheduler& scheduler, Owner& owner, HomeProcess home)
      : scheduler_(scheduler), owner_(owner), home_(home) {}

  bool was_left() const noexcept { return home_.was_left(); }

  bool is_set_by(MonotonicTime time) const noexcept {
    return set_for_.load(std::memory_order_relaxed) <= time;
  }

  void wake_by(MonotonicTime time) {
    std::optional<MonotonicTime> to_schedule;
    {
      MutexLock lock(mu_);
      wanted_ = std::min(wanted_, time);
      to_schedule = settle();
    }
    schedule(to_schedule);
  }

  void close() noexcept {
    if (was_left()) return;
    for (;;) {
      TimerHandle timer;
      {
        MutexLock lock(mu_);
        DETENT_CHECK(running_on_ != std::this_thread::get_id());
        closed_ = true;
        timer = std::exchange(timer_, {});
      }
      if (!timer) break;
      timer.cancel_and_wait();  // a run that ends may have scheduled the next timer, so look again
    }
    // A job that the scheduler's `stop` handed back may be running without a timer.
    MutexLock lock(mu_);
    while (running_on_ != std::thread::id()) run_ended_.wait(mu_);
  }

 private:
  // The job. If the scheduler's `stop` hands it back, any thread may call it at any time.
  void run() noexcept {
    {
      MutexLock lock(mu_);
      if (closed_ || running_on_ != std::thread::id()) return;
      running_on_ = std::this_thread::get_id();
      set_for_.store(MonotonicTime::max(), std::memory_order_relaxed);
      wanted_ = MonotonicTime::max();
    }
    const std::optional<MonotonicTime> next = owner_.on_wakeup();
    std::optional<MonotonicTime> to_schedule;
    {
      MutexLock lock(mu_);
      running_on_ = std::thread::id();
      run_ended_.notify_all();
      wanted_ = std::min(wanted_, next.value_or(MonotonicTime::max()));
      to_schedule = settle();
    }
    schedule(to_schedule);
  }

  // Restores invariant 1. The caller must call `schedule` with the result after it has freed the
  // lock.
  [[nodiscard]] std::optional<MonotonicTime> settle() noexcept DETENT_REQUIRES(mu_) {
    const MonotonicTime set_for = set_for_.load(std::memory_order_relaxed);
    if (closed_ || arming_ || running_on_ != std::thread::id()) return std::nullopt;
    if (wanted_ >= set_for) return std::nullopt;
    set_for_.store(wanted_, std::memory_order_relaxed);
    if (set_for == MonotonicTime::max()) {
      arming_ = true;
      return wanted_;
    }
    // If the timer cannot be moved, it is about to run, or the scheduler has stopped.
    timer_.expires_at(wanted_);
    return std::nullopt;
  }

  void schedule(std::optional<MonotonicTime> time) {
    while (time) {
      TimerHandle timer =
          scheduler_.schedule_at(*time, [state = shared_from_this()] { state->run(); });
      MutexLock lock(mu_);
      arming_ = false;
      if (!timer) {
        set_for_.store(MonotonicTime::max(), std::memory_order_relaxed);
        wanted_ = MonotonicTime::max();
        return;
      }
      timer_ = std::move(timer);
      // During schedule_at, an earlier time may have been requested, or the timer may already have
      // run.
      time = settle();
    }
  }

  // Constant after construction. The scheduler and the owner are not used after `close`.
  Scheduler& scheduler_;
  Owner& owner_;
  const HomeProcess home_;

  // The time for which the timer is set; max if it is not set. Written under the lock. Owners read
  // it under their own lock, which orders the reads that matter (is_set_by). With a lock here,
  // every operation of an owner would take two locks.
  std::atomic<MonotonicTime> set_for_ = MonotonicTime::max();

  Mutex mu_;
  CondVar run_ended_;
  MonotonicTime wanted_ DETENT_GUARDED_BY(mu_) = MonotonicTime::max();
  TimerHandle timer_ DETENT_GUARDED_BY(mu_);
  std::thread::id running_on_ DETENT_GUARDED_BY(mu_);  // no thread: on_wakeup does not run
  bool arming_ DETENT_GUARDED_BY(mu_) = false;
  bool closed_ DETENT_GUARDED_BY(mu_) = false;
};

WakeupTimer::WakeupTimer(Scheduler& scheduler, Owner& owner)
    : state_(std::make_shared<State>(scheduler, owner, scheduler.impl_->core().home())) {}
WakeupTimer::~WakeupTimer() { close(); }

void WakeupTimer::close() noexcept { state_->close(); }
bool WakeupTimer::was_left() const noexcept { return state_->was_left(); }

bool WakeupTimer::is_set_by(MonotonicTime time) const noexcept { return state_->is_set_by(time); }
void WakeupTimer::wake_by(MonotonicTime time) { state_->wake_by(time); }

}  // namespace detent::internal
