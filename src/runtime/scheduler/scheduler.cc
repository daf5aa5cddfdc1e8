#include "detent/scheduler.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "base/home_process.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "detent/check.h"
#include "runtime/scheduler/scheduler_impl.h"

namespace detent {

using internal::SchedulerCore;
using internal::SchedulerShard;
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
      if (step.next == Step::Next::sleep) core.clock().wait(bell_, step.until);
    }
    MutexLock lock(mu_);
    ended_ = true;
    changed_.notify_all();
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
    const bool may_wait = !core().home().was_left() && !SchedulerShard::is_inside_job_of(core());
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
  return impl_->core().schedule(impl_->one_shot(std::move(job), due, options, where));
}

TimerHandle Scheduler::schedule_at(MonotonicTime deadline, Job job, const TimerOptions& options,
                                   SourceLocation where) {
  const internal::DueTime due = impl_->core().due_by(deadline);
  return impl_->core().schedule(impl_->one_shot(std::move(job), due, options, where));
}

TimerHandle Scheduler::schedule_at_date(WallTime due, Job&& job, const TimerOptions& options,
                                        SourceLocation where) {
  return impl_->core().schedule(impl_->for_date(std::move(job), due, options, where));
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
  auto timer = impl_->recurring(std::move(rule), std::move(job), recurring, options, where);
  return timer ? impl_->core().schedule(*std::move(timer)) : TimerHandle();
}

KeyedResult Scheduler::schedule_keyed_ns(std::string_view key, std::chrono::nanoseconds delay,
                                         KeyedJob job, SameKey same_key, SourceLocation where) {
  internal::expect_home(impl_->core().home());
  const internal::DueTime due = impl_->core().due_after(delay);
  return impl_->keyed().schedule(impl_->core(), key, std::move(job),
                                 impl_->one_shot({}, due, {.name = key}, where), same_key);
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

// ---- TimerHandle --------------------------------------------------------------------------------

TimerHandle::TimerHandle(std::shared_ptr<SchedulerShard> shard, internal::TimerId id) noexcept
    : shard_(std::move(shard)), id_(id) {}

TimerHandle::~TimerHandle() {
  if (shard_ != nullptr) shard_->cancel(id_);
}

TimerHandle::TimerHandle(TimerHandle&& other) noexcept
    : shard_(std::move(other.shard_)), id_(std::exchange(other.id_, {})) {}

TimerHandle& TimerHandle::operator=(TimerHandle&& other) noexcept {
  if (this == &other) return *this;
  TimerHandle old(std::move(*this));
  shard_ = std::move(other.shard_);
  id_ = std::exchange(other.id_, {});
  return *this;
}

CancelResult TimerHandle::cancel() noexcept {
  if (shard_ == nullptr) return CancelResult::not_pending;
  const CancelResult result = shard_->cancel(id_);
  if (result != CancelResult::running) release();  // so that the handle's destructor takes no lock
  return result;
}

CancelResult TimerHandle::cancel_and_wait() noexcept {
  return shard_ == nullptr ? CancelResult::not_pending : shard_->cancel_and_wait(id_);
}

bool TimerHandle::move_to(std::chrono::nanoseconds delay) noexcept {
  return shard_ != nullptr && shard_->move_by(id_, delay);
}

bool TimerHandle::expires_at(MonotonicTime deadline) noexcept {
  return shard_ != nullptr && shard_->move_to(id_, deadline);
}

bool TimerHandle::expires_at(WallTime due) noexcept {
  return shard_ != nullptr && shard_->move_to(id_, due);
}

bool TimerHandle::is_pending() const noexcept {
  return shard_ != nullptr && shard_->is_pending(id_);
}

void TimerHandle::release() noexcept {
  shard_.reset();
  id_ = {};
}

// ---- TimerContext -------------------------------------------------------------------------------

TimerContext::TimerContext(const void* called) noexcept
    : TimerContext(SchedulerShard::run_that_calls(called)) {}

void TimerContext::stop() noexcept {
  if (shard_ != nullptr) shard_->cancel(id_);
}

}  // namespace detent
