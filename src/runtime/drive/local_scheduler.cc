// A LocalScheduler is a TimerShard with a clock that is read once a turn, and without a lock. The
// path of a run is TimerOwner's, as in the shards of a Scheduler.
#include "detent/local_scheduler.h"

#include <algorithm>

#include "base/rng.h"
#include "detent/check.h"
#include "detent/internal/machine_time.h"
#include "runtime/scheduler/new_timer.h"
#include "runtime/scheduler/timer_owner.h"
#include "runtime/scheduler/timer_shard.h"

namespace detent {

namespace internal {

namespace {

using std::chrono::nanoseconds;

/// The machine's clock for a loop that sleeps by itself. A SystemClock can also wait, for which it
/// needs a lock.
class LoopClock final : public Clock {
 public:
  MonotonicTime now() const noexcept override { return machine_time(); }
  WallInstant wall_now() const noexcept override { return machine_wall_time(); }
  bool wait(Doorbell&, std::optional<MonotonicTime>) noexcept override {
    check_failed("the clock of a LocalScheduler does not wait", __FILE__, __LINE__);
  }
};

LocalSchedulerOptions complete(LocalSchedulerOptions options) {
  DETENT_CHECK(options.resolution > nanoseconds::zero());
  DETENT_CHECK(options.wall_check >= nanoseconds::zero());
  DETENT_CHECK(options.spin >= nanoseconds::zero());
  DETENT_CHECK(options.capacity >= 1);
  if (!options.seed) options.seed = random_seed();
  return options;
}

}  // namespace

/// The timers of a LocalScheduler. Owned by the scheduler and by its handles. Thread-compatible.
/// User code runs only where a comment says so, and always finds a consistent state.
// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): it deletes itself
class LocalTimers final : public TimerOwner {
 public:
  explicit LocalTimers(LocalSchedulerOptions options)
      : options_(complete(std::move(options))),
        clock_(options_.clock != nullptr ? *options_.clock : loop_clock_),
        rng_(*options_.seed),
        timers_(TickScale(clock_.now(), options_.resolution), options_.order, rng_.next()),
        turn_(clock_.now()),
        wall_steps_({.now = turn_, .wall = clock_.wall_now()}) {}

  /// The scheduler ends. Its handles may remain.
  void leave() noexcept {
    DETENT_CHECK(!InsideJob::of_scheduler(this));
    stop(Drain::drop);
    left_ = true;
    if (shares_ == 0) delete this;
  }

  const void* scheduler() const noexcept override { return this; }

  // ---- Called by users ----
  MonotonicTime now() const noexcept { return in_turn_ ? turn_ : clock_.now(); }
  /// Reads the wall clock second: time that passes between the two reads can only make a date
  /// later, never earlier.
  ClockReading read_turn() const noexcept {
    const MonotonicTime time = now();
    return {.now = time, .wall = clock_.wall_now()};
  }
  std::uint64_t next_seed() noexcept { return rng_.next(); }
  const Clock& clock() const noexcept { return clock_; }

  TimerHandle schedule(NewTimer&& timer) {
    if (!admits(timer.job)) return {};
    ++shares_;
    return TimerHandle(*this, timers_.add(std::move(timer)));
  }
  /// The same without details, which saves moving the job.
  TimerHandle schedule(Job&& job, const DueTime& due, SourceLocation where) {
    if (!admits(job)) return {};
    ++shares_;
    return TimerHandle(*this, timers_.add(std::move(job), due, where));
  }

  // Destroys the job, which runs user code.
  CancelResult cancel(TimerId id, Share share) noexcept override {
    CancelResult result{};
    {
      Job job;
      result = timers_.cancel(id, job);
    }
    const bool keeps = share == Share::give_back_unless_running && result == CancelResult::running;
    if (share != Share::keep && !keeps) take_share();
    return result;
  }
  /// Never waits: if the job is running, the caller is inside the job.
  CancelResult cancel_and_wait(TimerId id) noexcept override { return cancel(id, Share::keep); }
  void take_share() noexcept override {
    --shares_;
    if (left_ && shares_ == 0) delete this;
  }
  bool is_pending(TimerId id) const noexcept override { return timers_.is_pending(id); }

  // After the end the clock may be gone, so it is read only for a pending timer.
  bool move_by(TimerId id, nanoseconds delay) override {
    return can_move(id) && timers_.move(id, due_after(delay, now()), std::nullopt);
  }
  bool move_to(TimerId id, MonotonicTime due_at) override {
    return can_move(id) && timers_.move(id, {.at = due_at, .set_at = now()}, std::nullopt);
  }
  bool move_to(TimerId id, WallTime date) override {
    return can_move(id) && timers_.move(id, due_on(date, read_turn()), date);
  }

  // ---- Called by the loop ----
  void begin_turn() noexcept {
    DETENT_CHECK(!running_jobs_);
    turn_ = clock_.now();
    in_turn_ = true;
  }
  AdvanceResult run_ready(const Budget& budget) noexcept;
  std::optional<nanoseconds> time_to_next() const noexcept;
  std::optional<MonotonicTime> next_wakeup() const noexcept;

  // ---- The end ----
  std::vector<PendingJob> stop(Drain drain);
  bool is_running() const noexcept { return !stopping_; }

  // ---- Figures ----
  SchedulerStats stats() const noexcept {
    SchedulerStats stats = timers_.stats();
    stats.wakeups = turns_;
    return stats;
  }
  const TimerShard& timers() const noexcept { return timers_; }

 private:
  ~LocalTimers() = default;

  /// Whether a timer may be added; counts it if not.
  bool admits(const Job& job) noexcept {
    const bool job_is_callable = static_cast<bool>(job);
    DETENT_CHECK(job_is_callable);
    if (!stopping_ && timers_.size() < options_.capacity) [[likely]]
      return true;
    stopping_ ? timers_.count_refused() : timers_.count_rejected();
    return false;
  }

  // After the start of a stop, a queued timer stays queued, because it may be the last run.
  bool can_move(TimerId id) const noexcept {
    return stopping_ ? timers_.is_in_wheel(id) : timers_.is_pending(id);
  }
  void spin_until_due() noexcept;
  void read_wall() noexcept;
  void keep_due() noexcept;
  void drop(std::vector<PendingJob> taken) noexcept;

  // ---- The steps of a run ----
  std::optional<BegunRun> begin_run(TimerId id, Job& job) noexcept override {
    return timers_.begin_run(id, looked_, job);
  }
  BegunRun begin_occurrence(TimerId id, MonotonicTime now) noexcept override {
    return timers_.begin_occurrence(id, now);
  }
  ClockReading read_clocks() const noexcept override {
    const MonotonicTime now = clock_.now();
    return {.now = now, .wall = clock_.wall_now()};
  }
  void call(Job& job, const BegunRun&) noexcept override {
    if (!call_job(job, options_.error_handler)) timers_.count_error();
  }
  bool rearm(TimerId id, Job& job) noexcept override {
    return timers_.rearm(id, clock_.now(), repeat(), job);
  }
  bool rearm_for(std::optional<WallTime> next, TimerId id, const ClockReading& clocks,
                 Job& job) noexcept override {
    return timers_.rearm_for(next, id, clocks, repeat(), job);
  }
  void end_run(TimerId id) noexcept override { timers_.end_run(id); }
  TimerShard::Repeat repeat() const noexcept {
    return stopping_ ? TimerShard::Repeat::must_not : TimerShard::Repeat::may;
  }

  LoopClock loop_clock_;
  const LocalSchedulerOptions options_;
  Clock& clock_;
  Rng rng_;
  TimerShard timers_;

  MonotonicTime turn_;  // the time of the turn, or of the last turn
  bool in_turn_ = false;
  bool running_jobs_ = false;
  ClockReading looked_{};  // of the last run_ready; the wall clock only if there are dates
  WallSteps wall_steps_;

  // Timers that the wheel has fired. Those from next_due_ on have not been looked at.
  std::vector<TimerId> due_;
  std::size_t next_due_ = 0;
  std::vector<TimerId> later_;  // scheduled by the jobs of the present run_ready, and due

  std::optional<Drain> stopping_;
  std::uint64_t turns_ = 0;
  std::size_t shares_ = 0;  // of handles
  bool left_ = false;
};

// ---- the loop -----------------------------------------------------------------------------------

AdvanceResult LocalTimers::run_ready(const Budget& budget) noexcept {
  DETENT_CHECK(!running_jobs_);
  if (!in_turn_) begin_turn();
  if (options_.spin > nanoseconds::zero()) spin_until_due();
  ++turns_;
  running_jobs_ = true;
  looked_ = {.now = turn_, .wall = {}};
  if (timers_.has_dates()) read_wall();
  const bool is_timed = budget.time != nanoseconds::max();
  const MonotonicTime end = saturating_add(turn_, std::max(budget.time, nanoseconds::zero()));
  const std::uint64_t newest = timers_.last_generation();
  AdvanceResult result;
  bool wheel_has_more = true;
  bool budget_ended = budget.count == 0;
  while (!budget_ended) {
    if (next_due_ == due_.size()) {
      if (!wheel_has_more) break;
      // A job may have scheduled the first date.
      if (timers_.has_dates() && looked_.wall == WallInstant{}) read_wall();
      due_.clear();
      next_due_ = 0;
      wheel_has_more = timers_.collect(looked_, turn_, due_);
      continue;
    }
    const TimerId id = due_[next_due_++];
    if (id.generation > newest) {
      later_.push_back(id);
      continue;
    }
    if (!run(id)) continue;
    ++result.fired;
    budget_ended = result.fired == budget.count || (is_timed && clock_.now() >= end);
  }
  keep_due();
  running_jobs_ = false;
  in_turn_ = false;
  const std::optional<Tick> next = timers_.next_wakeup();
  const bool is_due = timers_.has_queued() || (next && timers_.time_of(*next) <= turn_);
  result.more = budget_ended && is_due;
  if (stopping_ == Drain::run_due && !result.more) {
    drop(timers_.take_all(TakeAll::pending_and_queued));
  }
  return result;
}

/// Waits for the next deadline if it is at most `spin` away. The turn then begins at the deadline.
void LocalTimers::spin_until_due() noexcept {
  const std::optional<Tick> tick = timers_.next_wakeup();
  if (!tick || timers_.has_queued()) return;
  const MonotonicTime due = timers_.time_of(*tick);
  if (saturating_subtract(due, options_.spin) > turn_) return;
  while (turn_ < due) turn_ = clock_.now();
}

void LocalTimers::read_wall() noexcept {
  looked_.wall = clock_.wall_now();
  if (wall_steps_.was_stepped(looked_)) timers_.retime(looked_);
}

/// Keeps the due timers that have not run for the next call. O(1), amortised.
void LocalTimers::keep_due() noexcept {
  due_.insert(due_.end(), later_.begin(), later_.end());
  later_.clear();
  if (!timers_.has_queued()) next_due_ = due_.size();  // the others were cancelled
  if (next_due_ < due_.size() / 2) return;
  due_.erase(due_.begin(), due_.begin() + static_cast<std::ptrdiff_t>(next_due_));
  next_due_ = 0;
}

std::optional<MonotonicTime> LocalTimers::next_wakeup() const noexcept {
  if (timers_.has_queued()) return turn_;
  const std::optional<Tick> tick = timers_.next_wakeup();
  if (!tick) return std::nullopt;
  const MonotonicTime at = saturating_subtract(timers_.time_of(*tick), options_.spin);
  if (!timers_.has_dates() || options_.wall_check == nanoseconds::zero()) return at;
  return std::min(at, saturating_add(turn_, options_.wall_check));
}

// Not the time of the turn: since then, time has passed, and the loop would sleep too long.
std::optional<nanoseconds> LocalTimers::time_to_next() const noexcept {
  const std::optional<MonotonicTime> at = next_wakeup();
  if (!at) return std::nullopt;
  return time_between(clock_.now(), *at);
}

// ---- the end ------------------------------------------------------------------------------------

std::vector<PendingJob> LocalTimers::stop(Drain drain) {
  if (strength(drain) <= strength(stopping_)) return {};
  stopping_ = drain;
  switch (drain) {
    case Drain::hand_back:
      return timers_.take_all(TakeAll::pending_and_queued);
    case Drain::drop:
      drop(timers_.take_all(TakeAll::pending_and_queued));
      break;
    case Drain::run_pending:
      drop(timers_.take_all(TakeAll::repeating));
      break;
    case Drain::run_due:
      if (running_jobs_) break;  // at its end, run_ready drops the others
      begin_turn();
      run_ready({});
      break;
  }
  return {};
}

/// Destroys jobs. Their destructors may use the scheduler, like jobs.
void LocalTimers::drop(std::vector<PendingJob> taken) noexcept {
  const InsideJob inside(*this, {}, nullptr);
  taken.clear();
}

}  // namespace internal

// ---- LocalScheduler -----------------------------------------------------------------------------

using internal::LocalTimers;

LocalScheduler::LocalScheduler(LocalSchedulerOptions options)
    : timers_(new LocalTimers(std::move(options))) {}
LocalScheduler::~LocalScheduler() { timers_->leave(); }

TimerHandle LocalScheduler::schedule_after_ns(std::chrono::nanoseconds delay, Job&& job,
                                              const TimerOptions& options, SourceLocation where) {
  const internal::DueTime due = internal::due_after(delay, timers_->now());
  if (!internal::has_details(options)) return timers_->schedule(std::move(job), due, where);
  return timers_->schedule(internal::one_shot_timer(std::move(job), due, options, where));
}

TimerHandle LocalScheduler::schedule_at(MonotonicTime deadline, Job job,
                                        const TimerOptions& options, SourceLocation where) {
  return timers_->schedule(internal::one_shot_timer(
      std::move(job), {.at = deadline, .set_at = timers_->now()}, options, where));
}

TimerHandle LocalScheduler::schedule_at_date(WallTime due, Job&& job, const TimerOptions& options,
                                             SourceLocation where) {
  return timers_->schedule(
      internal::timer_for_date(std::move(job), due, timers_->read_turn(), options, where));
}

TimerHandle LocalScheduler::schedule_every(const PeriodicOptions& periodic, PeriodicJob job,
                                           const TimerOptions& options, SourceLocation where) {
  return timers_->schedule(internal::periodic_timer(
      std::move(job).take(), periodic, timers_->read_turn(), timers_->next_seed(), options, where));
}

TimerHandle LocalScheduler::schedule_on(RecurringRule rule, RecurringJob job,
                                        const RecurringOptions& recurring,
                                        const TimerOptions& options, SourceLocation where) {
  const bool job_is_callable = static_cast<bool>(job);
  DETENT_CHECK(job_is_callable);
  auto timer =
      internal::recurring_timer({.rule = std::move(rule), .job = std::move(job)}, recurring,
                                timers_->read_turn(), timers_->next_seed(), options, where);
  return timer ? timers_->schedule(*std::move(timer)) : TimerHandle();
}

void LocalScheduler::begin_turn() noexcept { timers_->begin_turn(); }
MonotonicTime LocalScheduler::now() const noexcept { return timers_->now(); }
AdvanceResult LocalScheduler::run_ready(const Budget& budget) noexcept {
  return timers_->run_ready(budget);
}
std::optional<std::chrono::nanoseconds> LocalScheduler::time_to_next() const noexcept {
  return timers_->time_to_next();
}
std::optional<MonotonicTime> LocalScheduler::next_wakeup() const noexcept {
  return timers_->next_wakeup();
}

std::vector<PendingJob> LocalScheduler::stop(Drain drain) { return timers_->stop(drain); }
bool LocalScheduler::is_running() const noexcept { return timers_->is_running(); }

SchedulerStats LocalScheduler::stats() const { return timers_->stats(); }
LatenessReport LocalScheduler::lateness() const { return timers_->timers().ledger().report(); }

std::vector<TimerInfo> LocalScheduler::pending_timers(std::size_t limit) const {
  constexpr std::uint32_t kRange = 1024;
  std::vector<TimerInfo> infos;
  bool more = true;
  for (std::uint32_t first = 0; more && infos.size() < limit; first += kRange) {
    more = timers_->timers().describe(first, kRange, infos);
  }
  if (infos.size() > limit) infos.resize(limit);
  return infos;
}

std::vector<std::uint64_t> LocalScheduler::forecast(std::chrono::nanoseconds width,
                                                    std::size_t bins) const {
  DETENT_CHECK(width > std::chrono::nanoseconds::zero());
  std::vector<std::uint64_t> counts(bins);
  std::vector<MonotonicTime> due;
  timers_->timers().deadlines(0, std::numeric_limits<std::uint32_t>::max(), due);
  internal::count_by_bin(due, timers_->now(), width, counts);
  return counts;
}

const Clock& LocalScheduler::clock() const noexcept { return timers_->clock(); }

}  // namespace detent
