// A timer group is a scheduler of one shard without a thread: one timer of another scheduler, the
// parent, drives it. Below is what stands between the two.
#include "detent/timer_group.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "detent/check.h"
#include "detent/internal/saturate.h"
#include "runtime/driver.h"
#include "runtime/group_time.h"
#include "runtime/scheduler_impl.h"

namespace detent {

using internal::GroupTime;
using internal::SchedulerCore;
using internal::Step;
using std::chrono::nanoseconds;

namespace {

/// The group's clock, and what has it stepped: a periodic timer of the parent, which is due when
/// the next step is. By itself it would run again at the end of time; after each change of what
/// the group waits for, or of its clock, it is aimed anew. There is one for the group's whole life:
/// so a wake-up needs no room in the parent and no memory.
///
/// No wake-up is lost, whatever state the parent's timer is in when it comes, because
///  1. A step that is under way leaves the timer alone; so does who wakes the group meanwhile, but
///     he makes `step_at_` early. When the steps are over the timer is aimed, in the same critical
///     section that ends them.
///  2. Otherwise the timer is aimed: at `aim_`, no later than when group time will be `step_at_`.
///     The parent's timer may be pending, queued, running (its job not yet at its first step, or
///     through with its last): wherever it is, move_next_run makes it run at that time or earlier.
///  3. A timer that is due by the parent's clock is not moved any more, so that wake-ups cannot
///  push
///     it back. Its job comes, and steps.
///
/// Locks are taken in this order: the group's shard (its driver is woken, its clock read under it),
/// this, the parent's shard.
///
/// Thread-safe. Owned by the group and by the job of the parent's timer, which the parent may hand
/// back, to be called after the group's end.
class GroupDriver final : public internal::Driver, public Clock {
 public:
  explicit GroupDriver(Clock& parent) : parent_(parent), time_(parent.now()) {}

  /// Takes the first step. Requires: called once, before anything else uses `core`. Afterwards
  /// `timer`'s job calls `run`.
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
  /// Nobody waits by group time: no thread belongs to a group, and none waits for room in it.
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

  /// Nobody but the caller may be there to step: his thread may be the parent's, or the parent may
  /// have stopped. So he does it himself, after a step that is under way elsewhere.
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
  // What one run takes at most, so that a group in which something is always due leaves the
  // parent's other timers their turn. Some thousand timers.
  static constexpr int kMostSteps = 16;

  bool begin() {
    MutexLock lock(mu_);
    if (stepping_ || ended_) return false;
    stepping_ = true;
    aim_ = MonotonicTime::max();  // from now on it is the next run that is aimed
    return true;
  }

  /// Returns: whether another step is needed at once.
  bool step() {
    {
      MutexLock lock(mu_);
      step_at_ = MonotonicTime::max();  // what was to be seen earlier, this step sees
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
  TimerHandle timer_ DETENT_GUARDED_BY(mu_);     // the parent's
  bool stepping_ DETENT_GUARDED_BY(mu_) = true;  // until `start` is through
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
          // Group time leaves the wall clock behind even when nobody steps that.
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
  return impl_->core().schedule(impl_->one_shot(std::move(job), due, options, where));
}

TimerHandle TimerGroup::schedule_at(MonotonicTime deadline, Job job, const TimerOptions& options,
                                    SourceLocation where) {
  const internal::DueTime due = impl_->core().due_by(deadline);
  return impl_->core().schedule(impl_->one_shot(std::move(job), due, options, where));
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
