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
  std::unique_ptr<PeriodicOptions> periodic;  // made first: it may run out of memory
  if (timer.periodic) periodic = std::make_unique<PeriodicOptions>(*timer.periodic);
  Entry& entry = slab_.emplace();
  entry.generation = ++scheduled_;
  entry.job = std::move(timer.job);
  entry.due_at_wall = timer.due_at_wall;
  entry.periodic = std::move(periodic);
  arm(entry, timer.due_at);
  return entry.id();
}

TimerShard::Entry* TimerShard::find(TimerId id) const noexcept {
  Entry* const entry = slab_.find(id.index);
  return entry != nullptr && entry->generation == id.generation ? entry : nullptr;
}

void TimerShard::arm(Entry& entry, MonotonicTime due_at) noexcept {
  entry.state = State::pending;
  entry.due_at = due_at;
  wheel_.postpone(entry.index, scale_.tick_at_or_after(due_at));
}

std::optional<MonotonicTime> TimerShard::next_wakeup() const noexcept {
  const std::optional<Tick> tick = wheel_.next_wakeup();
  if (!tick) return std::nullopt;
  return scale_.time_of(*tick);
}

bool TimerShard::collect(const ClockReading& clocks, std::vector<TimerId>& due) noexcept {
  const auto on_fire = [&](std::uint32_t index) { on_due(slab_[index], clocks, due); };
  return wheel_.advance(scale_.tick_at_or_before(clocks.now), on_fire, kBatch).more;
}

void TimerShard::on_due(Entry& entry, const ClockReading& clocks,
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
  entry.state = State::queued;
  ++queued_;
  due.push_back(entry.id());
}

Job TimerShard::take_out(Entry& entry) noexcept {
  if (entry.state == State::pending) {
    wheel_.cancel(entry.index);
  } else {
    DETENT_CHECK(entry.state == State::queued);
    --queued_;
  }
  Job job = std::move(entry.job);
  end(entry);
  return job;
}

void TimerShard::end(Entry& entry) noexcept {
  DETENT_CHECK(!wheel_.is_pending(entry.index));
  DETENT_CHECK(!entry.job);
  slab_.erase(entry.index);
}

CancelResult TimerShard::cancel(TimerId id, Job& job) noexcept {
  Entry* const entry = find(id);
  if (entry == nullptr) return CancelResult::not_pending;
  if (entry->state == State::running) {
    entry->cancelled = true;
    return CancelResult::running;
  }
  job = take_out(*entry);
  ++cancelled_;
  return CancelResult::cancelled;
}

bool TimerShard::begin_run(TimerId id, Job& job) noexcept {
  Entry* const entry = find(id);
  if (entry == nullptr || entry->state != State::queued) return false;
  entry->state = State::running;
  --queued_;
  ++running_;
  ++runs_;
  job = std::move(entry->job);
  return true;
}

bool TimerShard::rearm(TimerId id, Job& job, MonotonicTime now) noexcept {
  Entry* const entry = find(id);
  DETENT_CHECK(entry != nullptr);
  DETENT_CHECK(entry->state == State::running);
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
  Entry* const entry = find(id);
  DETENT_CHECK(entry != nullptr);
  DETENT_CHECK(entry->state == State::running);
  --running_;
  if (entry->periodic == nullptr || entry->periodic->count == 1) {
    ++completed_;
  } else if (entry->cancelled) {
    ++cancelled_;
  } else {
    ++dropped_;  // there were runs to come, but the scheduler stopped
  }
  end(*entry);
}

bool TimerShard::move(TimerId id, MonotonicTime due_at) noexcept {
  Entry* const entry = find(id);
  if (entry == nullptr || entry->state == State::running) return false;
  // One that is queued goes back to the wheel; begin_run, called later for nothing, sees that.
  if (entry->state == State::queued) --queued_;
  entry->due_at_wall.reset();
  arm(*entry, due_at);
  return true;
}

bool TimerShard::is_pending(TimerId id) const noexcept {
  const Entry* const entry = find(id);
  return entry != nullptr && entry->state != State::running;
}

bool TimerShard::is_running(TimerId id) const noexcept {
  const Entry* const entry = find(id);
  return entry != nullptr && entry->state == State::running;
}

std::vector<PendingJob> TimerShard::take_all(TakeAll which) {
  std::vector<PendingJob> taken;
  taken.reserve(slab_.size());
  slab_.for_each([&](Entry& entry) {
    const bool take = entry.state == State::pending ||
                      (entry.state == State::queued && which == TakeAll::pending_and_queued);
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
