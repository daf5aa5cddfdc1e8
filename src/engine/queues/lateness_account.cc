#include "engine/queues/lateness_account.h"

#include <algorithm>
#include <utility>

namespace detent {

using std::chrono::nanoseconds;

void LatenessAccount::note_limits(Queue& queue, bool is_full_of_leases) {
  if (is_full_of_leases != is_full_of_leases_) {
    is_full_of_leases_ = is_full_of_leases;
    all_held_.hold(clock_.now(), is_full_of_leases ? MonotonicTime::max() : MonotonicTime{});
  }
  const QueueSettings& settings = queue.record.settings;
  const bool has_limit =
      settings.paused || settings.rate || settings.concurrency || queue.paused_until != 0;
  if (has_limit || queue.held.is_running()) queue.held.hold(clock_.now(), held_until(queue));
}

/// When the limits of the queue allow a hand-out again, if no change comes before.
MonotonicTime LatenessAccount::held_until(const Queue& queue) const {
  const QueueSettings& settings = queue.record.settings;
  if (settings.paused || queue.awaits_a_lease()) return MonotonicTime::max();
  const Tick now = time_.now();
  MonotonicTime until{};
  if (queue.paused_until > now) until = time_.when(queue.paused_until);
  if (settings.rate && queue.rate.left(*settings.rate, now) == 0) {
    until = std::max(until, time_.when(HandOutRate::next(now)));
  }
  return until;
}

HeldTime::Duration LatenessAccount::held_total(const Queue& queue,
                                               MonotonicTime now) const noexcept {
  return queue.held.total(now) + all_held_.total(now);
}

LatenessParts LatenessAccount::note_hand_out(const LoadedTask& task) {
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
