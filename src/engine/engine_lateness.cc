// Why tasks are handed out after they were due, split into parts that add up:
//
//     due ──── opened ──── ready ──────────────── handed out
//         before_start    engine    limit + worker
//
// What was due already when the engine was opened came too late for it. From then on until the task
// fired, the engine was behind. After that it lay ready: for as long as a limit of its queue, or
// the one on all leases, let nobody have it, that limit held it back (held_time.h); the rest of the
// time nobody asked. A task whose due time had passed when it was made counts from then on.
#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/engine.h"
#include "engine/engine_state.h"

namespace detent {

using std::chrono::nanoseconds;

/// A limit of the queue, or what it has used up of it, may have changed. A few branches for a queue
/// that has none.
void Engine::note_limits(Queue& queue) {
  const bool is_full = leases_.size() >= most_leased();
  if (is_full != is_full_of_leases_) {
    is_full_of_leases_ = is_full;
    all_held_.hold(clock_.now(), is_full ? MonotonicTime::max() : MonotonicTime{});
  }
  const QueueSettings& settings = queue.record.settings;
  const bool has_limit =
      settings.paused || settings.rate || settings.concurrency || queue.paused_until != 0;
  if (has_limit || queue.held.is_running()) queue.held.hold(clock_.now(), held_until(queue));
}

/// When the queue's limits let a task go, if nothing else changes.
MonotonicTime Engine::held_until(const Queue& queue) const {
  const QueueSettings& settings = queue.record.settings;
  const bool has_all_leases = settings.concurrency && queue.leased >= *settings.concurrency;
  if (settings.paused || has_all_leases) return MonotonicTime::max();
  const Tick now = time_.now();
  MonotonicTime until{};
  if (queue.paused_until > now) until = time_.when(queue.paused_until);
  if (settings.rate && queue.rate.left(*settings.rate, now) == 0) {
    until = std::max(until, time_.when(HandOutRate::next(now)));
  }
  return until;
}

/// Time in which no task of the queue could have been handed out. Where both limits were reached at
/// once it counts twice; note_hand_out() bounds that.
HeldTime::Duration Engine::held_total(const Queue& queue, MonotonicTime now) const {
  return queue.held.total(now) + all_held_.total(now);
}

/// Counts the lateness of a ready task that is handed out now; returns its parts if it is late.
LatenessParts Engine::note_hand_out(const LoadedTask& task) {
  const MonotonicTime now = clock_.now();
  const MonotonicTime due =
      std::min(now, time_.when(std::max(task.tick, time_.tick_at(task.created_at))));
  const MonotonicTime opened = std::clamp(opened_at_, due, now);
  const MonotonicTime ready = std::clamp(task.ready_since, opened, now);
  const nanoseconds held =
      std::min<nanoseconds>(now - ready, held_total(*task.queue, now) - task.held_before_ready);
  const ByCause<nanoseconds> parts{opened - due, ready - opened, held, now - ready - held};
  for (std::size_t i = 0; i < kLatenessCauses; ++i) {
    late_rest_[i] += parts[i];
    const auto whole = std::chrono::floor<std::chrono::milliseconds>(late_rest_[i]);
    late_time_[i] += whole;
    late_rest_[i] -= whole;
  }
  if (now - due < kLate) return {};
  ++late_tasks_[static_cast<std::size_t>(main_cause(parts))];
  LatenessParts late;
  for (std::size_t i = 0; i < kLatenessCauses; ++i) {
    late[i] = std::chrono::floor<std::chrono::milliseconds>(parts[i]);
  }
  return late;
}

}  // namespace detent
