#include "runtime/scheduler/scheduler_core.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <iterator>
#include <thread>

#include "base/thread.h"
#include "detent/check.h"
#include "detent/internal/saturate.h"

namespace detent::internal {

namespace {

using std::chrono::nanoseconds;

SchedulerOptions complete(SchedulerOptions options) {
  DETENT_CHECK(options.resolution > nanoseconds::zero());
  DETENT_CHECK(options.wall_check >= nanoseconds::zero());
  DETENT_CHECK(options.spin >= nanoseconds::zero());
  DETENT_CHECK(!options.alerts.errors || *options.alerts.errors >= 1);
  if (options.order == DueOrder::by_schedule) {
    DETENT_CHECK(options.shards <= 1);
    options.shards = 1;
  }
  if (options.shards == 0) {
    const std::size_t processors = std::max(1u, std::thread::hardware_concurrency());
    options.shards = std::min<std::size_t>(64, 4 * processors);
  }
  if (!options.seed) options.seed = random_seed();
  return options;
}

/// The shard of a handle that a SchedulerCore made.
SchedulerShard& shard_of(TimerOwner& owner) noexcept { return static_cast<SchedulerShard&>(owner); }

}  // namespace

SchedulerCore::SchedulerCore(SchedulerOptions options, Driver& driver, Waiting waiting,
                             HomeProcess home)
    : options_(complete(std::move(options))),
      clock_(options_.clock != nullptr ? *options_.clock : machine_),
      driver_(driver),
      waiting_(waiting),
      home_(home),
      scale_(clock_.now(), options_.resolution),
      admission_(options_.capacity,
                 options_.alerts.pending ? Admission::Watch::yes : Admission::Watch::no),
      rng_(*options_.seed),
      woke_at_(clock_.now()),
      wall_steps_(read_clocks()) {
  for (std::size_t i = 0; i < options_.shards; ++i) {
    shards_.push_back(SchedulerShard::make(*this, scale_, rng_.next()));
  }
}
SchedulerCore::~SchedulerCore() {
  for (const auto& shard : shards_) shard->leave();
}

std::uint64_t SchedulerCore::next_seed() noexcept {
  expect_home(home_);
  MutexLock lock(mu_);
  return rng_.next();
}

// ---- called by users ----------------------------------------------------------------------------

const std::shared_ptr<SchedulerShard>& SchedulerCore::shard_of_this_thread() const noexcept {
  return shards_[thread_number() % shards_.size()];
}

ClockReading SchedulerCore::read_clocks() const noexcept {
  const MonotonicTime now = clock_.now();
  return {.now = now, .wall = clock_.wall_now()};
}

TimerHandle SchedulerCore::schedule(NewTimer&& timer) {
  expect_home(home_);
  const bool job_is_callable = static_cast<bool>(timer.job);
  DETENT_CHECK(job_is_callable);
  if (admission_.counts()) [[unlikely]]
    return schedule_counted(std::move(timer));
  return add(std::move(timer));
}

TimerHandle SchedulerCore::schedule_counted(NewTimer&& timer) {
  const std::optional<std::size_t> count = admission_.try_admit();
  if (!count) return schedule_when_full(std::move(timer));
  check_pending(*count);
  return add(std::move(timer));
}

TimerHandle SchedulerCore::add(NewTimer&& timer) {
  const std::shared_ptr<SchedulerShard>& shard = shard_of_this_thread();
  const TimerId id = shard->add(std::move(timer));
  if (id != TimerId{}) return TimerHandle(*shard, id);
  admission_.release(1);
  return {};
}

TimerHandle SchedulerCore::schedule_when_full(NewTimer&& timer) {
  const bool may_wait = waiting_ == Waiting::allowed && !InsideJob::of_scheduler(this);
  const bool is_plain =
      timer.details == nullptr || (!timer.details->periodic && !timer.details->date);
  if (may_wait && options_.when_full == WhenFull::block) {
    if (const std::optional<std::size_t> count = admission_.await_room()) {
      check_pending(*count);
      return add(std::move(timer));
    }
  }
  if (admission_.is_closed()) {
    shard_of_this_thread()->count_refused();
    return {};
  }
  shard_of_this_thread()->count_rejected();
  if (may_wait && options_.when_full == WhenFull::run_in_caller && is_plain) {
    run_in_caller(std::move(timer));
  }
  return {};
}

void SchedulerCore::run_in_caller(NewTimer&& timer) {
  if (!admission_.wait_in_caller(clock_, timer.due.at)) return;
  shard_of_this_thread()->run_in_caller(std::move(timer.job));
  admission_.leave_caller();
}

std::size_t SchedulerCore::cancel_all() {
  std::size_t cancelled = 0;
  for (const auto& shard : shards_) cancelled += shard->cancel_all();
  return cancelled;
}

void SchedulerCore::move_next_run(const TimerHandle& handle, MonotonicTime due_at) {
  if (handle) shard_of(*handle.owner_).move_next_run(handle.id_, due_at);
}

bool SchedulerCore::is_stopping() const noexcept {
  if (home_.was_left()) return true;
  MutexLock lock(mu_);
  return stop_called_.has_value();
}

void SchedulerCore::stop_or_wait() {
  stop(is_stopping() ? Drain::run_pending : Drain::drop, MonotonicTime::max());
}

// In a child process of fork() no driver thread exists, and any lock may stay locked forever. So
// `stop` does nothing there.
std::vector<PendingJob> SchedulerCore::stop(Drain drain, MonotonicTime deadline) {
  if (home_.was_left()) return {};
  bool is_stronger = false;
  {
    MutexLock lock(mu_);
    stop_by_.store(std::min(deadline, stop_by_.load(std::memory_order_relaxed)),
                   std::memory_order_relaxed);
    is_stronger = strength(drain) > strength(stop_called_);
    if (is_stronger) stop_called_ = drain;
  }
  std::vector<PendingJob> left;
  if (is_stronger) left = close_shards(drain);
  driver_.wake();
  if (drain != Drain::hand_back) left.clear();
  if (InsideJob::of_scheduler(this)) return left;
  driver_.await_end();
  for (const auto& shard : shards_) shard->await_quiet();
  admission_.await_callers();
  return left;
}

std::vector<PendingJob> SchedulerCore::close_shards(Drain drain) {
  admission_.close();
  std::vector<PendingJob> left;
  for (const auto& shard : shards_) {
    std::vector<PendingJob> taken = shard->close(drain);
    std::move(taken.begin(), taken.end(), std::back_inserter(left));
  }
  MutexLock lock(mu_);
  // Another thread may already have set a stronger drain.
  if (strength(drain) > strength(stopping_)) stopping_ = drain;
  return left;
}

// ---- called by the driver -----------------------------------------------------------------------

// Reads the time after it knows whether to stop. So the jobs that were due when `stop` was called
// are run.
Step SchedulerCore::step() {
  const bool woke = std::exchange(slept_, false);
  std::optional<Drain> stopping;
  {
    MutexLock lock(mu_);
    if (woke) ++wakeups_;
    stopping = stopping_;
  }
  if (stopping == Drain::drop || stopping == Drain::hand_back) return drop(TakeAll::pending);
  const ClockReading clocks = read_clocks();
  if (stopping && is_past_stop(clocks.now)) return drop(TakeAll::pending_and_queued);
  if (woke) woke_at_ = clocks.now;
  const bool wall_stepped = wall_steps_.was_stepped(clocks);
  // Must be read before the looks at the shards: a queued timer may go back into a wheel, and then
  // the driver is woken.
  const bool was_quiet = stopping && is_quiet();
  Step step{.next = Step::Next::sleep};
  bool has_dates = false;
  for (const auto& shard : shards_) {
    due_.clear();
    const Look look = shard->look(clocks, woke_at_, wall_stepped, due_);
    hand_out(*shard);
    if (look.again) step.next = Step::Next::again;
    if (look.until) step.until = std::min(*look.until, step.until.value_or(MonotonicTime::max()));
    has_dates |= look.has_dates;
  }
  if (step.next == Step::Next::again) return step;
  const bool none_is_due_ever = step.until.value_or(MonotonicTime::max()) == MonotonicTime::max();
  if (stopping == Drain::run_due || (stopping == Drain::run_pending && none_is_due_ever)) {
    const bool drops = was_quiet || stopping == Drain::run_due;
    const Step end = drops ? drop(TakeAll::pending) : Step{};
    return was_quiet ? end : wait_for_quiet();
  }
  if (stopping) step.until = std::min(*step.until, stop_by_.load(std::memory_order_relaxed));
  if (has_dates && options_.wall_check > nanoseconds::zero()) {
    const MonotonicTime check = saturating_add(clocks.now, options_.wall_check);
    step.until = std::min(check, step.until.value_or(MonotonicTime::max()));
  }
  slept_ = true;
  return step;
}

// `stop` writes its deadline before it sets `stopping_`, so a step that sees `stopping_` also sees
// the deadline. A later `stop` with another deadline wakes the driver.
bool SchedulerCore::is_past_stop(MonotonicTime now) const noexcept {
  return now >= stop_by_.load(std::memory_order_relaxed);
}

Step SchedulerCore::drop(TakeAll which) noexcept {
  for (const auto& shard : shards_) shard->drop(which);
  return {.next = Step::Next::end};
}

bool SchedulerCore::is_quiet() const noexcept {
  return std::all_of(shards_.begin(), shards_.end(),
                     [](const auto& shard) { return shard->is_quiet(); });
}

// While jobs are queued or running, the driver stays to drop the queued jobs at the deadline. A
// later `stop` may still set such a deadline. The last job wakes the driver.
Step SchedulerCore::wait_for_quiet() noexcept {
  slept_ = true;
  Step step{.next = Step::Next::sleep};
  const MonotonicTime stop_by = stop_by_.load(std::memory_order_relaxed);
  if (stop_by != MonotonicTime::max()) step.until = stop_by;
  return step;
}

void SchedulerCore::hand_out(SchedulerShard& shard) noexcept {
  for (const TimerId id : due_) {
    const bool has_deadline = stop_by_.load(std::memory_order_relaxed) != MonotonicTime::max();
    if (has_deadline && is_past_stop(clock_.now())) [[unlikely]]
      return;  // the next step drops the others
    if (options_.executor == nullptr || !execute(shard, id)) shard.run(id);
  }
}

/// Returns false if the executor threw. The executor may have kept the job anyway. The driver then
/// runs the job, too: the first of both runs counts, and the other finds nothing to do.
bool SchedulerCore::execute(SchedulerShard& shard, TimerId id) noexcept {
  try {
    options_.executor->execute([s = shard.shared_from_this(), id] { s->run(id); });
    return true;
  } catch (...) {  // user code may throw anything
    // Terminate inside the handler, so that the message of the runtime names the exception.
    if (!options_.error_handler) std::terminate();
    options_.error_handler(std::current_exception());
    return false;
  }
}

// ---- running a job ------------------------------------------------------------------------------

bool SchedulerCore::call(Job& job) noexcept {
  if (call_job(job, options_.error_handler)) return true;
  std::uint64_t errors = 0;
  {
    MutexLock lock(mu_);
    errors = ++errors_;
  }
  const AlertOptions& alerts = options_.alerts;
  if (alerts.on_alert && alerts.errors && errors % *alerts.errors == 0) {
    alerts.on_alert({.kind = Alert::Kind::errors, .value = errors});
  }
  return false;
}

void SchedulerCore::check_lateness(const BegunRun& run) const noexcept {
  const AlertOptions& alerts = options_.alerts;
  if (!alerts.on_alert || !alerts.lateness) return;
  if (run.lateness <= *alerts.lateness || run.was_last_late) return;
  alerts.on_alert(
      {.kind = Alert::Kind::lateness, .value = static_cast<std::uint64_t>(run.lateness.count())});
}

void SchedulerCore::check_pending(std::size_t count) const noexcept {
  const AlertOptions& alerts = options_.alerts;
  if (!alerts.on_alert || !alerts.pending || count != *alerts.pending) return;
  alerts.on_alert({.kind = Alert::Kind::pending, .value = count});
}

// ---- figures ------------------------------------------------------------------------------------

SchedulerStats SchedulerCore::stats() const {
  SchedulerStats sum;
  if (home_.was_left()) return sum;
  for (const auto& shard : shards_) {
    const SchedulerStats one = shard->stats();
    sum.scheduled += one.scheduled;
    sum.completed += one.completed;
    sum.cancelled += one.cancelled;
    sum.dropped += one.dropped;
    sum.rejected += one.rejected;
    sum.pending += one.pending;
    sum.running += one.running;
    sum.runs += one.runs;
    sum.errors += one.errors;
  }
  MutexLock lock(mu_);
  sum.wakeups = wakeups_;
  return sum;
}

LatenessReport SchedulerCore::lateness() const {
  LatenessLedger sum;
  if (home_.was_left()) return sum.report();
  for (const auto& shard : shards_) shard->add_to(sum);
  return sum.report();
}

std::vector<TimerInfo> SchedulerCore::pending_timers(std::size_t limit) const {
  std::vector<TimerInfo> infos;
  if (home_.was_left()) return infos;
  for (const auto& shard : shards_) {
    shard->for_ranges([&](const TimerShard& timers, std::uint32_t first, std::uint32_t count) {
      return infos.size() < limit && timers.describe(first, count, infos);
    });
  }
  if (infos.size() > limit) infos.resize(limit);
  return infos;
}

std::vector<std::uint64_t> SchedulerCore::forecast(nanoseconds width, std::size_t bins) const {
  DETENT_CHECK(width > nanoseconds::zero());
  std::vector<std::uint64_t> counts(bins);
  if (home_.was_left()) return counts;
  std::vector<MonotonicTime> due;
  const MonotonicTime now = clock_.now();
  for (const auto& shard : shards_) {
    shard->for_ranges([&](const TimerShard& timers, std::uint32_t first, std::uint32_t count) {
      return timers.deadlines(first, count, due);
    });
    count_by_bin(due, now, width, counts);
    due.clear();
  }
  return counts;
}

std::optional<TimerInfo> SchedulerCore::info_of(const TimerHandle& handle) {
  if (!handle) return std::nullopt;
  return shard_of(*handle.owner_).info_of(handle.id_);
}

}  // namespace detent::internal
