#include "detent/scheduler.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "base/home_process.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "detent/check.h"
#include "detent/internal/saturate.h"
#include "runtime/scheduler/scheduler_impl.h"

namespace detent {

using internal::SchedulerCore;
using internal::Step;

namespace {

/// A dedicated thread that makes the steps of a core and sleeps between them. The destructor waits
/// for the thread, so the core must have been stopped.
class ThreadDriver final : public internal::Driver {
 public:
  /// Starts the thread. Throws std::system_error if the thread cannot be started.
  void start(SchedulerCore& core) {
    thread_ = Thread([this, &core] { drive(core); });
  }

  /// Requires: the core has been stopped.
  void join() { thread_.join(); }

  void wake() noexcept override { bell_.ring(); }

  void await_end() override {
    MutexLock lock(mu_);
    while (!ended_) changed_.wait(mu_);
  }

 private:
  void drive(SchedulerCore& core) {
    for (Step step; step.next != Step::Next::end;) {
      step = core.step();
      if (step.next == Step::Next::sleep) sleep(core, step.until);
    }
    MutexLock lock(mu_);
    ended_ = true;
    changed_.notify_all();
  }

  /// Sleeps until `until` or a ring. Spins for the last part of the time, if the options say so.
  void sleep(SchedulerCore& core, std::optional<MonotonicTime> until) {
    const std::chrono::nanoseconds spin = core.options().spin;
    Clock& clock = core.clock();
    if (!until || spin == std::chrono::nanoseconds::zero()) {
      clock.wait(bell_, until);
      return;
    }
    if (clock.wait(bell_, internal::saturating_subtract(*until, spin))) return;
    while (clock.now() < *until) {
      if (clock.wait(bell_, MonotonicTime::min())) return;  // only takes a ring
    }
  }

  // With its own synchronisation.
  Doorbell bell_;

  Mutex mu_;
  CondVar changed_;
  bool ended_ DETENT_GUARDED_BY(mu_) = false;

  Thread thread_;  // used only by the thread that starts and joins it
};

/// A scheduler with its own thread.
class ThreadedImpl final : public internal::SchedulerImpl {
 public:
  explicit ThreadedImpl(SchedulerOptions options, std::unique_ptr<ThreadDriver> driver)
      : SchedulerImpl(std::move(options), *driver, SchedulerCore::Waiting::allowed,
                      internal::HomeProcess()),
        driver_(std::move(driver)) {
    driver_->start(core());
  }
  ~ThreadedImpl() override {
    stop();
    driver_.reset();
  }

  /// Ends a scheduler that is never destroyed, at the exit of the process. Called once. It does not
  /// wait if it is called from inside a job. It joins the thread: otherwise the thread would still
  /// run while static objects are destroyed.
  void end() {
    core().stop(Drain::drop, MonotonicTime::max());
    const bool may_wait = !core().home().was_left() && !internal::InsideJob::of_scheduler(&core());
    if (may_wait) driver_->join();
  }

 private:
  std::unique_ptr<ThreadDriver> driver_;
};

}  // namespace

// ---- Scheduler ----------------------------------------------------------------------------------

Scheduler::Scheduler(SchedulerOptions options)
    : impl_(std::make_unique<ThreadedImpl>(std::move(options), std::make_unique<ThreadDriver>())) {}
Scheduler::Scheduler(std::unique_ptr<internal::SchedulerImpl> impl) noexcept
    : impl_(std::move(impl)) {}
Scheduler::~Scheduler() {
  if (impl_->core().home().was_left()) static_cast<void>(impl_.release());
}

const Clock& Scheduler::clock() const noexcept { return impl_->core().clock(); }

TimerHandle Scheduler::schedule_after_ns(std::chrono::nanoseconds delay, Job&& job,
                                         const TimerOptions& options, SourceLocation where) {
  const internal::DueTime due = impl_->core().due_after(delay);
  return impl_->core().schedule(internal::one_shot_timer(std::move(job), due, options, where));
}

TimerHandle Scheduler::schedule_at(MonotonicTime deadline, Job job, const TimerOptions& options,
                                   SourceLocation where) {
  const internal::DueTime due = impl_->core().due_by(deadline);
  return impl_->core().schedule(internal::one_shot_timer(std::move(job), due, options, where));
}

TimerHandle Scheduler::schedule_at_date(WallTime due, Job&& job, const TimerOptions& options,
                                        SourceLocation where) {
  return impl_->core().schedule(
      internal::timer_for_date(std::move(job), due, impl_->core().read_clocks(), options, where));
}

TimerHandle Scheduler::schedule_every(const PeriodicOptions& periodic, PeriodicJob job,
                                      const TimerOptions& options, SourceLocation where) {
  return impl_->core().schedule(impl_->periodic(std::move(job).take(), periodic, options, where));
}

TimerHandle Scheduler::schedule_on(RecurringRule rule, RecurringJob job,
                                   const RecurringOptions& recurring, const TimerOptions& options,
                                   SourceLocation where) {
  const bool job_is_callable = static_cast<bool>(job);
  DETENT_CHECK(job_is_callable);
  auto timer = internal::recurring_timer({.rule = std::move(rule), .job = std::move(job)},
                                         recurring, impl_->core().read_clocks(),
                                         impl_->core().next_seed(), options, where);
  return timer ? impl_->core().schedule(*std::move(timer)) : TimerHandle();
}

KeyedResult Scheduler::schedule_keyed_ns(std::string_view key, std::chrono::nanoseconds delay,
                                         KeyedJob job, SameKey same_key, SourceLocation where) {
  internal::expect_home(impl_->core().home());
  const internal::DueTime due = impl_->core().due_after(delay);
  return impl_->keyed().schedule(impl_->core(), key, std::move(job),
                                 internal::one_shot_timer({}, due, {.name = key}, where), same_key);
}

KeyedResult Scheduler::schedule_keyed(std::string_view key, const PeriodicOptions& periodic,
                                      KeyedJob job, SameKey same_key, SourceLocation where) {
  internal::expect_home(impl_->core().home());
  return impl_->keyed().schedule(impl_->core(), key, std::move(job),
                                 impl_->periodic({}, periodic, {.name = key}, where), same_key);
}

KeyedResult Scheduler::schedule_keyed(std::string_view key, const PeriodicOptions& periodic,
                                      SameKey same_key, SourceLocation where) {
  const auto& job = impl_->core().options().default_job;
  const bool has_default_job = static_cast<bool>(job);
  DETENT_CHECK(has_default_job);
  return schedule_keyed(key, periodic, KeyedJob(job), same_key, where);
}

CancelResult Scheduler::cancel_key(std::string_view key) {
  if (impl_->core().home().was_left()) return CancelResult::not_pending;
  return impl_->keyed().cancel(key);
}

std::optional<TimerInfo> Scheduler::find_key(std::string_view key) const {
  if (impl_->core().home().was_left()) return std::nullopt;
  return impl_->keyed().find(key);
}

std::vector<PendingJob> Scheduler::stop(Drain drain) {
  return impl_->core().stop(drain, MonotonicTime::max());
}
std::vector<PendingJob> Scheduler::stop(Drain drain, MonotonicTime deadline) {
  return impl_->core().stop(drain, deadline);
}
bool Scheduler::is_running() const noexcept { return !impl_->core().is_stopping(); }

SchedulerStats Scheduler::stats() const { return impl_->core().stats(); }
LatenessReport Scheduler::lateness() const { return impl_->core().lateness(); }

std::vector<TimerInfo> Scheduler::pending_timers(std::size_t limit) const {
  return impl_->core().pending_timers(limit);
}

std::vector<std::uint64_t> Scheduler::forecast(std::chrono::nanoseconds width,
                                               std::size_t bins) const {
  return impl_->core().forecast(width, bins);
}

Scheduler& default_scheduler() {
  // Never destroyed, because destructors of static objects may use it after this function's statics
  // are gone. The static pointers keep it reachable for leak checkers.
  static ThreadedImpl* ended_at_exit = nullptr;
  static Scheduler* const scheduler = [] {
    auto impl =
        std::make_unique<ThreadedImpl>(SchedulerOptions{}, std::make_unique<ThreadDriver>());
    ended_at_exit = impl.get();
    std::atexit([] { ended_at_exit->end(); });
    return new Scheduler(std::move(impl));
  }();
  return *scheduler;
}

}  // namespace detent
