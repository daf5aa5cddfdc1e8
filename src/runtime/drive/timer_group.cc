// A timer group is a scheduler with one shard and without a thread. One timer of another scheduler,
// the parent, drives it. This file connects the two.
#include "detent/timer_group.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "detent/check.h"
#include "detent/internal/saturate.h"
#include "runtime/drive/group_time.h"
#include "runtime/scheduler/driver.h"
#include "runtime/scheduler/scheduler_impl.h"

namespace detent {

using internal::GroupTime;
using internal::SchedulerCore;
using internal::Step;
using std::chrono::nanoseconds;

namespace {

/// The clock of a group, and the driver of the group's scheduler. The driver has a periodic timer
/// of the parent: the timer is due when the group needs its next step. Its own next tick is at the
/// end of time. After each change of the group's next due time or of its clock, the driver *aims*
/// the timer, that is, moves it to the new time. One timer serves for the whole life of the group,
/// so a wake-up needs no room in the parent and no memory.
///
/// No wake-up is lost, whatever the state of the parent's timer is:
///  1. A running step does not aim the timer. A thread that wakes the group during a step does not
///     aim either, but makes `step_at_` early. After the steps, the driver aims the timer in the
///     critical section that ends them.
///  2. When no step is running, the timer is aimed: `aim_` is at most the parent's time at which
///     group time reaches `step_at_`. The parent's timer may be pending, queued or running (before
///     its first step or after its last). In each state, move_next_run makes it run at that time or
///     earlier.
///  3. A timer that is already due by the parent's clock is not moved any more, so wake-ups cannot
///     delay it. Its job will run and make a step.
///
/// Locks are taken in this order: the group's shard (it wakes the driver and reads the clock under
/// its lock), this object, the parent's shard.
///
/// Thread-safe. Owned by the group and by the job of the parent's timer. The parent may hand this
/// job back, and then it may be called after the group's end.
class GroupDriver final : public internal::Driver, public Clock {
 public:
  explicit GroupDriver(Clock& parent) : parent_(parent), time_(parent.now()) {}

  /// Makes the first step. Requires: it is called once, before anything else uses `core`. From then
  /// on the job of `timer` calls `run`.
  void start(SchedulerCore& core, TimerHandle timer) {
    core_ = &core;
    core.step();
    MutexLock lock(mu_);
    timer_ = std::move(timer);
    stepping_ = false;
  }

  // ---- The clock ----
  MonotonicTime now() const noexcept override {
    MutexLock lock(mu_);
    return time_.at(parent_.now());
  }
  WallInstant wall_now() const noexcept override { return parent_.wall_now(); }
  /// Never called: no thread belongs to a group, and no thread waits for room in a group.
  bool wait(Doorbell&, std::optional<MonotonicTime>) noexcept override {
    internal::check_failed("no thread waits in a timer group", __FILE__, __LINE__);
  }

  double rate() const {
    MutexLock lock(mu_);
    return time_.rate();
  }
  bool is_paused() const {
    MutexLock lock(mu_);
    return time_.is_paused();
  }
  void pause() {
    MutexLock lock(mu_);
    time_.pause(parent_.now());
    aim();
  }
  void resume() {
    MutexLock lock(mu_);
    time_.resume(parent_.now());
    aim();
  }
  void set_rate(double rate) {
    MutexLock lock(mu_);
    time_.set_rate(parent_.now(), rate);
    aim();
  }

  // ---- The driver ----
  void wake() noexcept override {
    MutexLock lock(mu_);
    step_at_ = MonotonicTime::min();
    aim();
  }

  /// The calling thread may be the only thread that can make steps: it may be the parent's thread,
  /// or the parent may have stopped. So it makes the last steps itself, after a running step of
  /// another thread has ended.
  void await_end() override {
    {
      MutexLock lock(mu_);
      timer_.cancel();
      while (stepping_) stepped_.wait(mu_);
      if (ended_) return;
      stepping_ = true;
    }
    while (core_->step().next != Step::Next::end) {
    }
    MutexLock lock(mu_);
    stepping_ = false;
    ended_ = true;
    stepped_.notify_all();
  }

  /// The job of the parent's timer.
  void run() {
    if (!begin()) return;
    for (int steps = 0; steps < kMostSteps && step(); ++steps) {
    }
    MutexLock lock(mu_);
    stepping_ = false;
    aim();
    stepped_.notify_all();
  }

 private:
  // The most steps in one run, a few thousand timers. The limit lets the parent's other timers run
  // even if a group always has due timers.
  static constexpr int kMostSteps = 16;

  bool begin() {
    MutexLock lock(mu_);
    if (stepping_ || ended_) return false;
    stepping_ = true;
    aim_ = MonotonicTime::max();  // from here on, `aim` sets the time of the next run
    return true;
  }

  /// Makes a step. Returns whether another step is needed immediately.
  bool step() {
    {
      MutexLock lock(mu_);
      // The step below sees everything that an earlier wake-up asked for.
      step_at_ = MonotonicTime::max();
    }
    const Step step = core_->step();
    MutexLock lock(mu_);
    if (step.next == Step::Next::again) step_at_ = MonotonicTime::min();
    if (step.until) step_at_ = std::min(step_at_, *step.until);
    return step_at_ == MonotonicTime::min();
  }

  void aim() noexcept DETENT_REQUIRES(mu_) {
    if (stepping_ || ended_) return;
    const MonotonicTime now = parent_.now();
    const MonotonicTime at = time_.parent_time_of(step_at_, now);
    if (at == aim_ || aim_ <= now) return;
    aim_ = at;
    SchedulerCore::move_next_run(timer_, at);
  }

  // Constant after construction, or after `start`.
  Clock& parent_;
  SchedulerCore* core_ = nullptr;

  mutable Mutex mu_;
  CondVar stepped_;
  GroupTime time_ DETENT_GUARDED_BY(mu_);
  TimerHandle timer_ DETENT_GUARDED_BY(mu_);     // of the parent
  bool stepping_ DETENT_GUARDED_BY(mu_) = true;  // until `start` has finished
  bool ended_ DETENT_GUARDED_BY(mu_) = false;
  MonotonicTime step_at_ DETENT_GUARDED_BY(mu_) = MonotonicTime::max();  // in group time
  MonotonicTime aim_ DETENT_GUARDED_BY(mu_) = MonotonicTime::max();      // in the parent's time
};

SchedulerOptions options_of(SchedulerCore& parent, const TimerGroupOptions& own, Clock& clock) {
  const SchedulerOptions& its = parent.options();
  DETENT_CHECK(own.resolution >= nanoseconds::zero());
  const bool has_resolution = own.resolution != nanoseconds::zero();
  return {.resolution = has_resolution ? own.resolution : its.resolution,
          .clock = &clock,
          .executor = its.executor,
          .error_handler = own.error_handler ? own.error_handler : its.error_handler,
          .shards = 1,
          .order = its.order,
          // Group time moves against the wall clock even without a step of the wall clock.
          .wall_check = its.wall_check > nanoseconds::zero() ? its.wall_check
                                                             : nanoseconds(std::chrono::seconds{1}),
          .seed = parent.next_seed()};
}

}  // namespace

class TimerGroup::Impl final : public internal::SchedulerImpl {
 public:
  Impl(internal::SchedulerImpl& parent, const TimerGroupOptions& options, SourceLocation where)
      : Impl(parent, options, where, std::make_shared<GroupDriver>(parent.core().clock())) {}
  ~Impl() override { stop(); }

  GroupDriver& driver() noexcept { return *driver_; }

 private:
  Impl(internal::SchedulerImpl& parent, const TimerGroupOptions& options, SourceLocation where,
       std::shared_ptr<GroupDriver> driver)
      : SchedulerImpl(options_of(parent.core(), options, *driver), *driver,
                      SchedulerCore::Waiting::never, parent.core().home()),
        driver_(std::move(driver)) {
    TimerHandle timer = parent.core().schedule(parent.periodic(
        [d = driver_] { d->run(); }, {.period = nanoseconds::max(), .pace = Pace::fixed_delay},
        {.name = "timer group"}, where));
    const bool refused = !timer;
    driver_->start(core(), std::move(timer));
    if (refused) core().stop(Drain::drop, MonotonicTime::max());
  }

  const std::shared_ptr<GroupDriver> driver_;
};

TimerGroup::TimerGroup(Scheduler& scheduler, const TimerGroupOptions& options, SourceLocation where)
    : impl_(std::make_unique<Impl>(*scheduler.impl_, options, where)) {}
TimerGroup::~TimerGroup() {
  if (impl_->core().home().was_left()) static_cast<void>(impl_.release());
}

TimerHandle TimerGroup::schedule_after_ns(nanoseconds delay, Job job, const TimerOptions& options,
                                          SourceLocation where) {
  const internal::DueTime due = impl_->core().due_after(delay);
  return impl_->core().schedule(internal::one_shot_timer(std::move(job), due, options, where));
}

TimerHandle TimerGroup::schedule_at(MonotonicTime deadline, Job job, const TimerOptions& options,
                                    SourceLocation where) {
  const internal::DueTime due = impl_->core().due_by(deadline);
  return impl_->core().schedule(internal::one_shot_timer(std::move(job), due, options, where));
}

TimerHandle TimerGroup::schedule_every(const PeriodicOptions& periodic, PeriodicJob job,
                                       const TimerOptions& options, SourceLocation where) {
  return impl_->core().schedule(impl_->periodic(std::move(job).take(), periodic, options, where));
}

std::size_t TimerGroup::cancel_all() { return impl_->core().cancel_all(); }

void TimerGroup::pause() { impl_->driver().pause(); }
void TimerGroup::resume() { impl_->driver().resume(); }
bool TimerGroup::is_paused() const { return impl_->driver().is_paused(); }
void TimerGroup::set_rate(double rate) { impl_->driver().set_rate(rate); }
double TimerGroup::rate() const { return impl_->driver().rate(); }
MonotonicTime TimerGroup::now() const { return impl_->driver().now(); }

SchedulerStats TimerGroup::stats() const { return impl_->core().stats(); }

}  // namespace detent
