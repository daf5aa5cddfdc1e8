#include "runtime/wakeup_timer.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/home_process.h"
#include "base/mutex.h"
#include "detent/check.h"
#include "runtime/scheduler_impl.h"

namespace detent::internal {

/// Thread-safe.
///
/// Invariants, whenever the lock is free:
///  1. If nothing runs, is being scheduled or was closed, the timer is set for the earliest time
///     that was asked for since the last wake-up began: wanted_ >= set_for_.
///  2. At most one thread is inside `schedule_at` (arming_), and at most one in `on_wakeup`.
///  3. `timer_` is the handle of the timer that is pending or running, if there is one, as soon as
///     the thread that scheduled it is through.
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
      timer.cancel_and_wait();  // a run that ends may have scheduled the next: look again
    }
    // A job that the scheduler's stop handed back may be running, and no timer tells of it.
    MutexLock lock(mu_);
    while (running_on_ != std::thread::id()) run_ended_.wait(mu_);
  }

 private:
  // The job. Handed back by the scheduler's stop it may be called by anyone, at any time.
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

  // Makes invariant 1 true. Returns: what to call `schedule` with once the lock is free.
  [[nodiscard]] std::optional<MonotonicTime> settle() noexcept DETENT_REQUIRES(mu_) {
    const MonotonicTime set_for = set_for_.load(std::memory_order_relaxed);
    if (closed_ || arming_ || running_on_ != std::thread::id()) return std::nullopt;
    if (wanted_ >= set_for) return std::nullopt;
    set_for_.store(wanted_, std::memory_order_relaxed);
    if (set_for == MonotonicTime::max()) {
      arming_ = true;
      return wanted_;
    }
    // When it cannot be moved it is about to run, or the scheduler has stopped.
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
      time = settle();  // it may have been asked for earlier meanwhile, or have run already
    }
  }

  // Constant after construction. The first two are not touched any more once closed.
  Scheduler& scheduler_;
  Owner& owner_;
  const HomeProcess home_;

  // What the timer is set for; max: it is not. Written under the lock. Read by owners under theirs,
  // which orders the reads that matter (is_set_by); with a lock every operation would take two.
  std::atomic<MonotonicTime> set_for_ = MonotonicTime::max();

  Mutex mu_;
  CondVar run_ended_;
  MonotonicTime wanted_ DETENT_GUARDED_BY(mu_) = MonotonicTime::max();
  TimerHandle timer_ DETENT_GUARDED_BY(mu_);
  std::thread::id running_on_ DETENT_GUARDED_BY(mu_);  // none: on_wakeup does not run
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
