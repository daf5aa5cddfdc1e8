#include "runtime/scheduler/timer_shard.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "detent/internal/saturate.h"

namespace detent::internal {

namespace {

using std::chrono::nanoseconds;

// The width of a bin in which SlackUse::fill_valleys counts timers.
constexpr nanoseconds kValley = std::chrono::milliseconds{1};

/// How many whole ticks fit in `span`.
Tick ticks_of(nanoseconds span, const TickScale& scale) noexcept {
  return static_cast<Tick>(span / scale.resolution());
}

}  // namespace

WallTime whole_ms(WallInstant wall) noexcept {
  return std::chrono::floor<std::chrono::milliseconds>(wall);
}

nanoseconds time_until(WallTime due, WallInstant wall) noexcept {
  const WallTime whole = whole_ms(wall);
  if (due <= whole) return nanoseconds::zero();
  std::int64_t ms = 0;
  const bool is_too_far =
      __builtin_sub_overflow(due.time_since_epoch().count(), whole.time_since_epoch().count(), &ms);
  if (is_too_far) return nanoseconds::max();  // the clock shows a time before 1970
  const nanoseconds until = saturate_to_nanoseconds(std::chrono::milliseconds{ms});
  return until == nanoseconds::max() ? until : until - (wall - WallInstant{whole});
}

void count_by_bin(const std::vector<MonotonicTime>& due, MonotonicTime now, nanoseconds width,
                  std::vector<std::uint64_t>& counts) noexcept {
  for (const MonotonicTime at : due) {
    const auto bin = at <= now ? 0 : static_cast<std::uint64_t>((at - now) / width);
    if (bin < counts.size()) ++counts[static_cast<std::size_t>(bin)];
  }
}

TimerShard::TimerShard(const TickScale& scale, DueOrder order, std::uint64_t seed)
    : scale_(scale),
      order_(order),
      valleys_(std::max<Tick>(1, ticks_of(kValley, scale))),
      rng_(seed) {}

// ---- into the wheel and out of the wheel --------------------------------------------------------

Tick TimerShard::tick_within_slack(const Entry& entry, Tick tick) noexcept {
  const Tick slack = ticks_of(entry.details->slack, scale_);
  return entry.details->slack_use == SlackUse::coalesce ? coalesced_tick(tick, slack)
                                                        : valleys_.place(tick, slack, rng_);
}

void TimerShard::set_date(Entry& entry, std::optional<WallTime> date) noexcept {
  if (entry.is_dated()) --dated_;
  if (entry.details != nullptr) entry.details->date = date;
  if (date) ++dated_;
}

bool TimerShard::collect(const ClockReading& clocks, MonotonicTime woke_at,
                         std::vector<TimerId>& due) {
  const bool all = order_ == DueOrder::by_schedule;
  due.reserve(due.size() + (all ? wheel_.size() : kBatch));  // nothing is allocated below
  const auto on_fire = [&](std::uint32_t index) { on_due(slab_[index], clocks, woke_at, due); };
  const Tick now = scale_.tick_at_or_before(clocks.now);
  const bool more = wheel_.advance(now, on_fire, all ? DenseWheel::npos : kBatch).more;
  // The wheel fires timers in the order of their places. A postponed timer fires at its old place,
  // so the batch must be sorted.
  if (all || std::exchange(took_postponed_, false)) sort_by_deadline(due);
  return more;
}

void TimerShard::sort_by_deadline(std::vector<TimerId>& due) const {
  std::sort(due.begin(), due.end(), [this](TimerId a, TimerId b) {
    return std::pair(slab_[a.index].due_at, a.generation) <
           std::pair(slab_[b.index].due_at, b.generation);
  });
}

void TimerShard::on_due(Entry& entry, const ClockReading& clocks, MonotonicTime woke_at,
                        std::vector<TimerId>& due) noexcept {
  if (entry.tick > wheel_.now()) return put_in_wheel(entry);  // it was postponed
  took_postponed_ |= entry.tick != entry.wheel_tick;
  // A timer that was due immediately may have been scheduled after the driver read the clock.
  DETENT_CHECK(entry.due_at <= clocks.now || entry.tick < scale_.tick_at_or_after(entry.due_at));
  leave_valley(entry);
  entry.state = State::queued;
  if (is_before_date(entry, clocks)) return arm_for_date(entry, clocks);
  ++queued_;
  entry.woke_at = woke_at;
  entry.queued_at = std::max(clocks.now, entry.due_at);
  due.push_back(entry.id());
}

/// Whether the wall clock does not show the date yet, because it was stepped back. A recurring
/// timer whose date came from a wrong clock must run anyway, to continue from the correct time.
bool TimerShard::is_before_date(const Entry& entry, const ClockReading& clocks) noexcept {
  const WallTime wall = whole_ms(clocks.wall);
  if (!entry.is_dated() || *entry.details->date <= wall) return false;
  return !entry.is_recurring() || !entry.details->recurring->was_clock_wrong(wall);
}

void TimerShard::arm_for_date(Entry& entry, const ClockReading& clocks) noexcept {
  const nanoseconds wait = is_before_date(entry, clocks)
                               ? time_until(*entry.details->date, clocks.wall)
                               : nanoseconds::zero();
  const MonotonicTime due_at = saturating_add(clocks.now, wait);
  if (entry.is_periodic()) entry.details->periodic->move(due_at);
  arm(entry, {.at = due_at, .set_at = clocks.now});
}

void TimerShard::retime(const ClockReading& clocks) noexcept {
  if (dated_ == 0) return;
  slab_.for_each([&](Entry& entry) {
    if (entry.state == State::pending && entry.is_dated()) arm_for_date(entry, clocks);
  });
}

// ---- called by users ----------------------------------------------------------------------------

bool TimerShard::drop(TimerId id, Job& job) noexcept {
  if (!is_in_wheel(id)) return false;
  take_out(slab_[id.index], job);
  ++dropped_;
  return true;
}

bool TimerShard::move(TimerId id, const DueTime& due, std::optional<WallTime> date) {
  Entry* const entry = find(id);
  if (entry == nullptr || entry->state == State::running) return false;
  if (date && entry->details == nullptr) entry->details = std::make_unique<TimerDetails>();
  // A queued timer goes back into the wheel. The queued call of begin_run then finds that it has
  // nothing to do.
  if (entry->state == State::queued) --queued_;
  set_date(*entry, date);
  if (entry->is_periodic()) entry->details->periodic->move(due.at);
  if (entry->is_recurring()) entry->details->recurring->move();
  arm(*entry, due);
  return true;
}

bool TimerShard::move_next_run(TimerId id, const DueTime& due) {
  Entry* const entry = find(id);
  if (entry == nullptr || entry->state != State::running) return move(id, due, std::nullopt);
  DETENT_CHECK(entry->is_periodic());
  entry->details->next_run = due.at;
  return true;
}

void TimerShard::cancel_all(std::vector<Job>& jobs) {
  slab_.for_each([&](Entry& entry) {
    if (entry.state == State::running) {
      entry.cancelled = true;
      return;
    }
    take_out(entry, jobs.emplace_back());
    ++cancelled_;
  });
}

bool TimerShard::is_pending(TimerId id) const noexcept {
  const Entry* const entry = find(id);
  return entry != nullptr && entry->state != State::running;
}

bool TimerShard::is_in_wheel(TimerId id) const noexcept {
  const Entry* const entry = find(id);
  return entry != nullptr && entry->state == State::pending;
}

bool TimerShard::is_running(TimerId id) const noexcept {
  const Entry* const entry = find(id);
  return entry != nullptr && entry->state == State::running;
}

// ---- running ------------------------------------------------------------------------------------

std::optional<BegunRun> TimerShard::begin_run(TimerId id, const ClockReading& clocks,
                                              Job& job) noexcept {
  Entry* const entry = find(id);
  if (entry == nullptr || entry->state != State::queued) return std::nullopt;
  --queued_;
  if (is_before_date(*entry, clocks)) {
    arm_for_date(*entry, clocks);
    return std::nullopt;
  }
  entry->state = State::running;
  ++running_;
  job = std::move(entry->job);
  if (entry->is_recurring()) {
    return BegunRun{.repeats = true, .recurring = entry->details->recurring};
  }
  if (entry->is_periodic()) entry->details->periodic->begin(clocks.now);
  return count_run(*entry, clocks.now);
}

BegunRun TimerShard::begin_occurrence(TimerId id, MonotonicTime now) noexcept {
  const Entry* const entry = find(id);
  DETENT_CHECK(entry != nullptr);
  DETENT_CHECK(entry->state == State::running);
  return count_run(*entry, now);
}

BegunRun TimerShard::count_run(const Entry& entry, MonotonicTime now) noexcept {
  ++runs_;
  record(entry, now);
  const BegunRun begun{
      .repeats = entry.repeats(), .lateness = now - entry.due_at, .was_last_late = last_was_late_};
  last_was_late_ = begun.lateness > late_threshold_;
  return begun;
}

void TimerShard::record(const Entry& entry, MonotonicTime now) noexcept {
  // If a timer was due immediately, its tick begins before its deadline. Then rounding adds no
  // lateness.
  const MonotonicTime chosen = std::max(scale_.time_of(entry.tick), entry.due_at);
  const MonotonicTime tick = scale_.time_of(scale_.tick_at_or_after(entry.due_at));
  ledger_.record({.deadline = entry.due_at,
                  .tick = std::min(tick, chosen),
                  .chosen_tick = chosen,
                  .woke_at = entry.woke_at,
                  .queued_at = entry.queued_at,
                  .began_at = now});
}

bool TimerShard::rearm(TimerId id, MonotonicTime now, Repeat repeat, Job& job) noexcept {
  Entry* const entry = find(id);
  DETENT_CHECK(entry != nullptr);
  DETENT_CHECK(entry->state == State::running);
  if (!entry->is_periodic()) return false;
  PeriodicTicks& ticks = *entry->details->periodic;
  if (!may_rearm(*entry, ticks.end(now), repeat)) return false;
  if (const auto next_run = std::exchange(entry->details->next_run, std::nullopt)) {
    ticks.move(*next_run);
  }
  rearm_at(*entry, {.at = ticks.due_at(), .set_at = now}, std::nullopt, job);
  return true;
}

bool TimerShard::rearm_for(std::optional<WallTime> next, TimerId id, const ClockReading& clocks,
                           Repeat repeat, Job& job) noexcept {
  Entry* const entry = find(id);
  DETENT_CHECK(entry != nullptr);
  DETENT_CHECK(entry->state == State::running);
  if (!may_rearm(*entry, next.has_value(), repeat)) return false;
  const MonotonicTime due_at = saturating_add(clocks.now, time_until(*next, clocks.wall));
  rearm_at(*entry, {.at = due_at, .set_at = clocks.now}, next, job);
  return true;
}

bool TimerShard::may_rearm(Entry& entry, bool has_next, Repeat repeat) noexcept {
  entry.exhausted = !has_next;
  return has_next && !entry.cancelled && repeat == Repeat::may;
}

/// `date` is the date of the next run. It replaces the date of the run that has ended.
void TimerShard::rearm_at(Entry& entry, const DueTime& due, std::optional<WallTime> date,
                          Job& job) noexcept {
  --running_;
  entry.job = std::move(job);
  set_date(entry, date);
  arm(entry, due);
}

void TimerShard::end_run(TimerId id) noexcept {
  Entry* const entry = find(id);
  DETENT_CHECK(entry != nullptr);
  DETENT_CHECK(entry->state == State::running);
  --running_;
  if (!entry->repeats() || entry->exhausted) {
    ++completed_;
  } else if (entry->cancelled) {
    ++cancelled_;
  } else {
    ++dropped_;  // more runs were due, but the scheduler stopped
  }
  end(*entry);
}

std::vector<PendingJob> TimerShard::take_all(TakeAll which) {
  std::vector<PendingJob> taken;
  slab_.for_each([&](Entry& entry) {
    if (entry.state == State::running) return;
    if (entry.state == State::queued && which == TakeAll::pending) return;
    if (!entry.repeats() && which == TakeAll::repeating) return;
    PendingJob& left = taken.emplace_back();
    left.deadline = entry.due_at;
    if (entry.is_periodic()) left.periodic = entry.details->periodic->left();
    if (entry.is_recurring()) left.recurring = entry.details->recurring->left();
    if (entry.details != nullptr) {
      left.name = std::move(entry.details->name);
      left.date = entry.details->date;
    }
    take_out(entry, left.job);
    ++dropped_;
  });
  return taken;
}

// ---- figures ------------------------------------------------------------------------------------

SchedulerStats TimerShard::stats() const noexcept {
  return {.scheduled = scheduled_,
          .completed = completed_,
          .cancelled = cancelled_,
          .dropped = dropped_,
          .rejected = rejected_,
          .pending = slab_.size() - running_,
          .running = running_,
          .runs = runs_,
          .errors = errors_};
}

TimerInfo TimerShard::describe(const Entry& entry) const {
  TimerInfo info{.scheduled_at = entry.where,
                 .state = entry.state == State::running  ? TimerState::running
                          : entry.state == State::queued ? TimerState::queued
                                                         : TimerState::pending,
                 .deadline = entry.due_at};
  if (entry.details == nullptr) return info;
  info.name = entry.details->name;
  info.date = entry.details->date;
  if (entry.is_periodic()) info.period = entry.details->periodic->left().period;
  return info;
}

std::optional<TimerInfo> TimerShard::info_of(TimerId id) const {
  const Entry* const entry = find(id);
  if (entry == nullptr) return std::nullopt;
  return describe(*entry);
}

bool TimerShard::describe(std::uint32_t first, std::uint32_t count,
                          std::vector<TimerInfo>& infos) const {
  return for_range(first, count, [&](const Entry& entry) { infos.push_back(describe(entry)); });
}

bool TimerShard::deadlines(std::uint32_t first, std::uint32_t count,
                           std::vector<MonotonicTime>& due) const {
  return for_range(first, count, [&](const Entry& entry) {
    if (entry.state != State::running) due.push_back(entry.due_at);
  });
}

}  // namespace detent::internal
