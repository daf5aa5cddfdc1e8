// Queues: their settings and limits, and what can be seen of them and of the engine from outside.
#include <algorithm>
#include <functional>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"
#include "engine/engine_state.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

Error no_queue() { return Error{ErrorCode::not_found, "there is no such queue", "queue"}; }

Error over_quota(std::string_view what, std::uint64_t most) {
  return Error{
      ErrorCode::resource_exhausted,
      "the queue holds as many " + std::string(what) + " as it may: " + std::to_string(most),
      "queue"};
}

}  // namespace

// ---- settings ----

Result<QueueView> Engine::queue(const std::string& name) const {
  if (stopped_by_) return *stopped_by_;
  const auto it = queues_.find(name);
  if (it == queues_.end() || it->second->record.number == 0) return no_queue();
  const Queue& queue = *it->second;
  return QueueView{
      .stats = stats_of(queue), .bytes = queue.record.bytes, .settings = queue.record.settings};
}

Result<void> Engine::set_queue(const std::string& name, const QueueSettings& settings) {
  if (stopped_by_) return *stopped_by_;
  TRY(validate(ScheduleRequest{.queue = name}));
  TRY(validate(settings));
  Queue& queue = queue_of(name);
  queue.record.settings = settings;
  note_change(queue);
  note_limits(queue);
  release_held();       // its tasks may go elsewhere now
  want_serving(queue);  // a limit may be gone
  return ok();
}

Result<void> Engine::remove_queue(const std::string& name) {
  if (stopped_by_) return *stopped_by_;
  ASSIGN_OR_RETURN(Queue* const queue, known_queue(name));
  if (queue->record.waiting + queue->record.dead > 0) {
    return Error{ErrorCode::conflict, "the queue has tasks: purge it, or let them end", "queue"};
  }
  if (std::ranges::find(removed_queues_, name) == removed_queues_.end()) {
    removed_queues_.push_back(name);
  }
  if (std::exchange(queue->is_changed, false)) std::erase(changed_queues_, queue);
  if (std::exchange(queue->cut_to, kNotCut) != kNotCut) std::erase(cut_queues_, queue);
  if (std::exchange(queue->to_deliver, false)) {
    std::erase(to_deliver_, queue);
    std::erase(held_, queue);
    queue->is_held = false;
  }
  queue->record = QueueRecord{.queue = name};
  note_counts(*queue);
  note_limits(*queue);
  forget_if_unused(*queue);
  return ok();
}

Result<Engine::Queue*> Engine::known_queue(const std::string& name) {
  const auto it = queues_.find(name);
  if (it == queues_.end() || it->second->record.number == 0) return no_queue();
  return it->second.get();
}

Engine::Queue& Engine::queue_of(const std::string& name) {
  std::unique_ptr<Queue>& queue = queues_[name];
  if (queue == nullptr) queue = std::make_unique<Queue>(name);
  return *queue;
}

void Engine::note_change(Queue& queue) {
  if (queue.record.number == 0) {
    queue.set_number(++last_queue_number_);
  }
  if (!std::exchange(queue.is_changed, true)) changed_queues_.push_back(&queue);
}

/// A queue that workers ask for and that never had a task is not kept: names cost nothing to make
/// up.
void Engine::forget_if_unused(Queue& queue) {
  if (queue.record.number != 0 || queue.to_serve || queue.serve_at != 0) return;
  if (queue.waits.empty()) queues_.erase(queue.record.queue);
}

// ---- limits ----

Result<void> Engine::check_quota(const Queue& queue, std::size_t payload_bytes) const {
  const QueueRecord& record = queue.record;
  const std::optional<std::uint64_t>& max_tasks = record.settings.max_tasks;
  if (max_tasks && record.waiting + record.dead >= *max_tasks) {
    return over_quota("tasks", *max_tasks);
  }
  return check_bytes(queue, payload_bytes);
}

Result<void> Engine::check_bytes(const Queue& queue, std::size_t more) const {
  const std::optional<std::uint64_t>& max_bytes = queue.record.settings.max_bytes;
  if (!max_bytes || queue.record.bytes + more <= *max_bytes) return ok();
  return over_quota("bytes", *max_bytes);
}

std::size_t Engine::most_leased() const noexcept {
  return std::max<std::size_t>(1, options_.max_loaded * kLeasedParts / kMemoryParts);
}

std::size_t Engine::allowance(Queue& queue) const {
  const QueueSettings& settings = queue.record.settings;
  if (settings.paused || time_.now() < queue.paused_until) return 0;
  std::size_t left = most_leased() - std::min(most_leased(), leases_.size());
  if (settings.concurrency) {
    left = std::min(
        left, *settings.concurrency - std::min<std::size_t>(*settings.concurrency, queue.leased));
  }
  if (settings.rate) {
    left = std::min<std::size_t>(left, queue.rate.left(*settings.rate, time_.now()));
  }
  return left;
}

// ---- what can be seen ----

std::uint64_t Engine::ready_of(const Queue& queue) noexcept {
  return queue.ready_in_memory() + queue.ready.spilled() + queue.webhooks.spilled();
}

QueueStats Engine::stats_of(const Queue& queue) const {
  const std::uint64_t ready = ready_of(queue);
  QueueStats stats{.queue = queue.record.queue,
                   .scheduled = queue.record.waiting - ready - queue.leased,
                   .ready = ready,
                   .leased = queue.leased,
                   .dead = queue.record.dead,
                   .oldest_ready_age = std::nullopt};
  const LoadedTask* first = nullptr;
  for (const ReadyTasks* const tasks : {&queue.ready, &queue.webhooks}) {
    if (tasks->in_memory.empty()) continue;
    const LoadedTask* const head = *tasks->in_memory.begin();
    if (first == nullptr || ReadyOrder()(head, first)) first = head;
  }
  if (first != nullptr) stats.oldest_ready_age = time_.wall_now() - first->due_at;
  return stats;
}

/// Counts a queue in the sums as it is now, instead of as it was counted last.
void Engine::recount(const Queue& queue, StoredCounts& sums) noexcept {
  const QueueRecord& record = queue.record;
  sums.waiting += record.waiting - queue.counted.waiting;
  sums.dead += record.dead - queue.counted.dead;
  sums.in_lanes += record.in_ready_lane + record.in_webhook_lane - queue.counted.in_lanes;
}

void Engine::note_counts(Queue& queue) {
  recount(queue, counted_);
  const QueueRecord& record = queue.record;
  queue.counted = {.waiting = record.waiting,
                   .dead = record.dead,
                   .in_lanes = record.in_ready_lane + record.in_webhook_lane};
}

QueueStats Engine::stats_of_all() const {
  StoredCounts sums = counted_;
  for (const Queue* const queue : changed_queues_) recount(*queue, sums);
  const std::uint64_t ready = ready_count_ + sums.in_lanes - loaded_from_lanes_;
  return {.queue = {},
          .scheduled = sums.waiting - ready - leases_.size(),
          .ready = ready,
          .leased = leases_.size(),
          .dead = sums.dead,
          .oldest_ready_age = std::nullopt};
}

EngineStats Engine::stats(std::size_t most_queues) const {
  EngineStats stats{.epoch = epoch_,
                    .counters = counters_,
                    .all = stats_of_all(),
                    .queue_count = queues_.size(),
                    .queues = {},
                    .loaded = loaded_.size(),
                    .urgent = urgent_count_,
                    .orphans = orphans_,
                    .waiting_workers = waits_.size(),
                    .schedules = schedules_.size(),
                    .commits = commits_,
                    .committed_tasks = committed_tasks_,
                    .lateness = lateness_.snapshot(),
                    .late = {.tasks = late_tasks_, .time = late_time_},
                    .commit_time = commit_time_.snapshot()};
  std::vector<const Queue*> shown;
  if (most_queues == 0) return stats;
  shown.reserve(queues_.size());
  for (const auto& [name, queue] : queues_) shown.push_back(queue.get());
  if (shown.size() > most_queues) {
    const auto end = shown.begin() + static_cast<std::ptrdiff_t>(most_queues);
    std::ranges::nth_element(shown, end, std::greater{}, [](const Queue* queue) {
      return queue->record.waiting + queue->record.dead;
    });
    shown.erase(end, shown.end());
  }
  stats.queues.reserve(shown.size());
  for (const Queue* const queue : shown) stats.queues.push_back(stats_of(*queue));
  std::ranges::sort(stats.queues, {}, &QueueStats::queue);
  return stats;
}

WheelView Engine::wheel() const {
  // Six levels reach the year 9999.
  WheelView view{.now = time_.wall_now(),
                 .level_count = 6,
                 .slots_per_level = DenseWheel::kSlotsPerLevel,
                 .timers = due_wheel_.size(),
                 .slots = {}};
  const milliseconds shift =
      view.now.time_since_epoch() - milliseconds{static_cast<std::int64_t>(time_.now())};
  const auto instant = [shift](Tick tick) {
    return WallTime{milliseconds{static_cast<std::int64_t>(tick)} + shift};
  };
  due_wheel_.for_each_slot([&](const WheelSlot& slot) {
    view.slots.push_back({.level = slot.level,
                          .index = slot.index,
                          .from = instant(slot.first),
                          .until = instant(slot.last + 1),
                          .count = slot.count});
  });
  return view;
}

Result<Forecast> Engine::forecast(std::chrono::milliseconds span, std::size_t bins) const {
  if (stopped_by_) return *stopped_by_;
  TRY(validate_forecast(span, bins));
  return due_counts_.forecast(time_.wall_now(), span, bins);
}

Result<TaskPage> Engine::tasks_after(TaskId after, std::size_t limit) {
  if (stopped_by_) return *stopped_by_;
  return store_.read_by_id(after, limit);
}

}  // namespace detent
