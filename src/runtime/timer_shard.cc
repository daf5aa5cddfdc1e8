#include "runtime/timer_shard.h"

#include <utility>

#include "detent/check.h"
#include "detent/internal/saturate.h"

namespace detent::internal {

namespace {

using std::chrono::nanoseconds;

/// The last tick of the period at or before `now`, counted from `tick`. Requires: tick <= now.
MonotonicTime last_tick(MonotonicTime tick, nanoseconds period, MonotonicTime now) {
  return tick + (now - tick) / period * period;
}

/// When the run after the one at `tick` is due, seen at `now`, when that one is over.
MonotonicTime next_run(MonotonicTime tick, const PeriodicOptions& periodic, MonotonicTime now) {
  const MonotonicTime next = saturating_add(tick, periodic.period);
  if (next >= now) return next;
  const MonotonicTime last = last_tick(next, periodic.period, now);
  switch (periodic.missed) {
    case MissedTick::run_once:
      return last;
    case MissedTick::skip:
      return last == now ? last : saturating_add(last, periodic.period);
  }
  return last;
}

/// The wall clock in the unit of dates. A date compared in nanoseconds would overflow in 2262.
WallTime whole_ms(WallInstant wall) { return std::chrono::floor<std::chrono::milliseconds>(wall); }

}  // namespace

nanoseconds time_until(WallTime due, WallInstant wall) noexcept {
  const WallTime whole = whole_ms(wall);
  if (due <= whole) return nanoseconds::zero();
  const nanoseconds until = saturate_to_nanoseconds(due - whole);
  return until == nanoseconds::max() ? until : until - (wall - WallInstant{whole});
}

TimerId TimerShard::add(NewTimer& timer) {
  TimerEntry& entry = slab_.allocate();
  entry.job = std::move(timer.job);
  entry.due_at_wall = timer.due_at_wall;
  if (timer.periodic) entry.periodic = std::make_unique<PeriodicOptions>(*timer.periodic);
  arm(entry, timer.due_at);
  ++scheduled_;
  return entry.id;
}

void TimerShard::arm(TimerEntry& entry, MonotonicTime due_at) noexcept {
  entry.state = TimerState::pending;
  entry.due_at = due_at;
  wheel_.postpone(entry, scale_.tick_at_or_after(due_at));
}

std::optional<MonotonicTime> TimerShard::next_wakeup() const noexcept {
  const std::optional<Tick> tick = wheel_.next_wakeup();
  if (!tick) return std::nullopt;
  return scale_.time_of(*tick);
}

bool TimerShard::collect(const ClockReading& clocks, std::vector<TimerId>& due) noexcept {
  const auto on_fire = [&](Timer& timer) { on_due(static_cast<TimerEntry&>(timer), clocks, due); };
  return wheel_.advance(scale_.tick_at_or_before(clocks.now), on_fire, kBatch).more;
}

void TimerShard::on_due(TimerEntry& entry, const ClockReading& clocks,
                        std::vector<TimerId>& due) noexcept {
  DETENT_CHECK(entry.due_at <= clocks.now);
  if (entry.due_at_wall &&
      *entry.due_at_wall > whole_ms(clocks.wall)) {  // the wall clock was stepped back
    arm(entry, saturating_add(clocks.now, time_until(*entry.due_at_wall, clocks.wall)));
    return;
  }
  if (entry.periodic != nullptr) {
    entry.due_at = last_tick(entry.due_at, entry.periodic->period, clocks.now);
  }
  entry.state = TimerState::queued;
  ++queued_;
  due.push_back(entry.id);
}

Job TimerShard::take_out(TimerEntry& entry) noexcept {
  if (entry.state == TimerState::pending) {
    wheel_.cancel(entry);
  } else {
    DETENT_CHECK(entry.state == TimerState::queued);
    --queued_;
  }
  Job job = std::move(entry.job);
  slab_.release(entry);
  return job;
}

CancelResult TimerShard::cancel(TimerId id, Job& job) noexcept {
  TimerEntry* const entry = slab_.find(id);
  if (entry == nullptr) return CancelResult::not_pending;
  if (entry->state == TimerState::running) {
    entry->cancelled = true;
    return CancelResult::running;
  }
  job = take_out(*entry);
  ++cancelled_;
  return CancelResult::cancelled;
}

bool TimerShard::begin_run(TimerId id, Job& job) noexcept {
  TimerEntry* const entry = slab_.find(id);
  if (entry == nullptr || entry->state != TimerState::queued) return false;
  entry->state = TimerState::running;
  --queued_;
  ++running_;
  ++runs_;
  job = std::move(entry->job);
  return true;
}

bool TimerShard::rearm(TimerId id, Job& job, MonotonicTime now) noexcept {
  TimerEntry* const entry = slab_.find(id);
  DETENT_CHECK(entry != nullptr);
  DETENT_CHECK(entry->state == TimerState::running);
  if (entry->periodic == nullptr || entry->cancelled) return false;
  PeriodicOptions& periodic = *entry->periodic;
  if (periodic.count == 1) return false;
  if (periodic.count > 1) --periodic.count;
  --running_;
  entry->job = std::move(job);
  arm(*entry, next_run(entry->due_at, periodic, now));
  return true;
}

void TimerShard::end_run(TimerId id) noexcept {
  TimerEntry* const entry = slab_.find(id);
  DETENT_CHECK(entry != nullptr);
  DETENT_CHECK(entry->state == TimerState::running);
  --running_;
  if (entry->periodic == nullptr || entry->periodic->count == 1) {
    ++completed_;
  } else if (entry->cancelled) {
    ++cancelled_;
  } else {
    ++dropped_;  // there were runs to come, but the scheduler stopped
  }
  slab_.release(*entry);
}

bool TimerShard::move(TimerId id, MonotonicTime due_at) noexcept {
  TimerEntry* const entry = slab_.find(id);
  if (entry == nullptr || entry->state == TimerState::running) return false;
  // One that is queued goes back to the wheel; begin_run, called later for nothing, sees that.
  if (entry->state == TimerState::queued) --queued_;
  entry->due_at_wall.reset();
  arm(*entry, due_at);
  return true;
}

bool TimerShard::is_pending(TimerId id) const noexcept {
  const TimerEntry* const entry = slab_.find(id);
  return entry != nullptr && entry->state != TimerState::running;
}

bool TimerShard::is_running(TimerId id) const noexcept {
  const TimerEntry* const entry = slab_.find(id);
  return entry != nullptr && entry->state == TimerState::running;
}

std::vector<PendingJob> TimerShard::take_all(TakeAll which) {
  std::vector<PendingJob> taken;
  taken.reserve(slab_.size());
  slab_.for_each([&](TimerEntry& entry) {
    const bool take = entry.state == TimerState::pending ||
                      (entry.state == TimerState::queued && which == TakeAll::pending_and_queued);
    if (!take) return;
    PendingJob& left = taken.emplace_back();
    left.deadline = entry.due_at;
    if (entry.periodic != nullptr) left.periodic = *entry.periodic;
    left.job = take_out(entry);
    ++dropped_;
  });
  return taken;
}

SchedulerStats TimerShard::stats() const noexcept {
  return {.scheduled = scheduled_,
          .completed = completed_,
          .cancelled = cancelled_,
          .dropped = dropped_,
          .pending = slab_.size() - running_,
          .running = running_,
          .runs = runs_};
}

}  // namespace detent::internal
