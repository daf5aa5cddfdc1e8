#include "runtime/scheduler/timer_owner.h"

namespace detent::internal {

namespace {

using std::chrono::nanoseconds;

// The wall clock counts as stepped if it moved this far against the monotonic clock. People do not
// notice a smaller step, and slewing (500 ppm) moves the clock by less than this in a second.
constexpr nanoseconds kWallStep = std::chrono::milliseconds{10};

// Shows which jobs the current thread is inside of, so that a job does not wait for itself.
thread_local const InsideJob* innermost_job = nullptr;

}  // namespace

// ---- InsideJob ----------------------------------------------------------------------------------

InsideJob::InsideJob(TimerOwner& owner, TimerId id, const void* called) noexcept
    : owner_(owner), id_(id), called_(called), outer_(innermost_job) {
  innermost_job = this;
}
InsideJob::~InsideJob() { innermost_job = outer_; }

bool InsideJob::of(const TimerOwner& owner, TimerId id) noexcept {
  for (const InsideJob* job = innermost_job; job != nullptr; job = job->outer_) {
    if (&job->owner_ == &owner && job->id_ == id) return true;
  }
  return false;
}

bool InsideJob::of_scheduler(const void* scheduler) noexcept {
  for (const InsideJob* job = innermost_job; job != nullptr; job = job->outer_) {
    if (job->owner_.scheduler() == scheduler) return true;
  }
  return false;
}

std::pair<TimerOwner*, TimerId> InsideJob::run_that_calls(const void* called) noexcept {
  if (innermost_job == nullptr || innermost_job->called_ != called) return {};
  return {&innermost_job->owner_, innermost_job->id_};
}

// ---- TimerOwner ---------------------------------------------------------------------------------

bool TimerOwner::run(TimerId id) noexcept {
  Job job;
  const std::optional<BegunRun> begun = begin_run(id, job);
  if (!begun) return false;
  const bool recurs = begun->recurring != nullptr;
  const InsideJob inside(*this, id, recurs ? begun->recurring : job.target());
  if (recurs) return run_occurrence(id, std::move(job), *begun->recurring);
  call(job, *begun);
  if (begun->repeats && rearm(id, job)) return true;
  job = Job();  // destroyed before any thread learns that the timer has ended
  end_run(id);
  return true;
}

// The rule is user code, so it is called without the lock, like a job. The members of `dates` need
// no lock either: while the timer is running, only this thread uses `dates`.
bool TimerOwner::run_occurrence(TimerId id, Job job, RecurringDates& dates) noexcept {
  const ClockReading clocks = read_clocks();
  const bool runs = dates.begin(whole_ms(clocks.wall));
  if (runs) call(job, begin_occurrence(id, clocks.now));
  const ClockReading after = read_clocks();
  const std::optional<WallTime> next = dates.end(whole_ms(after.wall));
  if (rearm_for(next, id, after, job)) return runs;
  job = Job();
  end_run(id);
  return runs;
}

bool call_job(Job& job, const std::function<void(std::exception_ptr)>& error_handler) noexcept {
  if (!error_handler) {
    job();
    return true;
  }
  try {
    job();
    return true;
  } catch (...) {  // user code may throw anything
    error_handler(std::current_exception());
    return false;
  }
}

// ---- stop and dates -----------------------------------------------------------------------------

int strength(std::optional<Drain> drain) noexcept {
  if (!drain) return 0;
  switch (*drain) {
    case Drain::run_pending:
      return 1;
    case Drain::run_due:
      return 2;
    case Drain::drop:
    case Drain::hand_back:
      return 3;
  }
  return 0;
}

bool WallSteps::was_stepped(const ClockReading& clocks) noexcept {
  const nanoseconds offset = offset_of(clocks);
  const nanoseconds moved = offset - offset_;
  if (moved > -kWallStep && moved < kWallStep) return false;
  offset_ = offset;
  return true;
}

}  // namespace detent::internal
