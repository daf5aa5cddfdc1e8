// Queues: their settings, limits and counts, and the figures of the engine.
#include <algorithm>
#include <functional>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"
#include "task/largest_queues.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

Error over_quota(std::string_view what, std::uint64_t most) {
  return Error{ErrorCode::resource_exhausted,
               "the queue is full: its limit is " + std::to_string(most) + " " + std::string(what),
               "queue"};
}

}  // namespace

// ---- settings ----

Result<QueueView> Engine::queue(const std::string& name) const {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(const Queue* const queue, queues_.known(name));
  return QueueView{
      .stats = stats_of(*queue), .bytes = queue->record.bytes, .settings = queue->record.settings};
}

Result<void> Engine::set_queue(const std::string& name, const QueueSettings& settings) {
  if (stopped_by()) return *stopped_by();
  TRY(validate(ScheduleRequest{.queue = name}));
  TRY(validate(settings));
  TRY(expect_here(name, settings.partitions, ""));
  const std::uint32_t partitions = partitions_of(name);
  if (partitions != settings.partitions && queues_.known(name)) {
    return Error{
        ErrorCode::conflict,
        "the queue was created with " + std::to_string(partitions) +
            (partitions == 1 ? " partition" : " partitions") +
            ": to change the number, wait until the queue is empty, remove it and create it again",
        "partitions"};
  }
  Queue& queue = queues_.queue_of(name);
  turns_.release(queue);  // its webhook may have changed
  queue.record.settings = settings;
  queues_.note_change(queue);
  tasks_.note_limits(queue);
  turns_.want_serving(queue);  // a limit may have been removed
  return ok();
}

std::uint32_t Engine::partitions_of(const std::string& name) const {
  const auto known = queues_.known(name);
  return known ? (*known)->record.settings.partitions : 1;
}

Result<void> Engine::expect_here(const std::string& queue, std::uint32_t partitions,
                                 std::string_view key) const {
  if (!options_.is_here || options_.is_here(queue, partitions, key)) return ok();
  return Error{
      ErrorCode::unavailable,
      "queue " + queue +
          " has other partitions than this node expects, because the partitions have just "
          "changed, or a change stopped half-way: try again; if the error stays, repeat the PATCH "
          "that created the queue",
      ""};
}

Result<void> Engine::remove_queue(const std::string& name) {
  if (stopped_by()) return *stopped_by();
  ASSIGN_OR_RETURN(Queue* const queue, queues_.known(name));
  if (queue->record.waiting + queue->record.dead > 0) {
    return Error{ErrorCode::conflict,
                 "the queue has tasks: purge it, or wait until its tasks have ended", "queue"};
  }
  turns_.forget_deliveries(*queue);
  window_.forget_cut(*queue);
  queue->paused_until = 0;
  turns_.forget_time(*queue);
  queues_.remove(*queue);
  tasks_.note_limits(*queue);
  queues_.forget_if_unused(*queue);
  return ok();
}

Result<void> Engine::pause_for(const std::string& name, milliseconds length) {
  if (stopped_by()) return *stopped_by();
  TRY(validate(ScheduleRequest{.queue = name, .due = length}));
  TRY(expect_here(name, ""));
  Queue& queue = queues_.queue_of(name);
  if (queue.record.number == 0) queues_.note_change(queue);
  queue.pause = length;
  queue.paused_until = length > milliseconds{0} ? time_.tick_after(length) : 0;
  tasks_.note_limits(queue);
  turns_.forget_time(queue);
  turns_.want_serving(queue);
  return ok();
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

// ---- figures ----

QueueStats Engine::stats_of(const Queue& queue) const {
  const std::uint64_t ready = queue.ready_count();
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
  if (queue.handed_out_at) {
    stats.last_handed_out_age =
        std::chrono::floor<milliseconds>(clock_.now() - *queue.handed_out_at);
  }
  return stats;
}

std::vector<QueueStats> Engine::oldest_queues(std::size_t most) const {
  std::vector<QueueStats> queues;
  queues.reserve(tasks_.queues_with_ready().size());
  for (const Queue* const queue : tasks_.queues_with_ready()) queues.push_back(stats_of(*queue));
  keep_oldest(queues, most);
  return queues;
}

QueueStats Engine::stats_of_all() const {
  const QueueCounts sums = queues_.counts();
  const std::uint64_t ready = tasks_.ready() + sums.in_lanes - tasks_.loaded_from_lanes();
  return {.queue = {},
          .scheduled = sums.waiting - ready - tasks_.leases().size(),
          .ready = ready,
          .leased = tasks_.leases().size(),
          .dead = sums.dead,
          .oldest_ready_age = std::nullopt};
}

EngineStats Engine::stats(std::size_t most_queues) const {
  CommitWriter::Written written = writer_.written();
  EngineStats stats{.epoch = epoch_,
                    .counters = news_.counters(),
                    .all = stats_of_all(),
                    .queue_count = queues_.size(),
                    .queues = {},
                    .loaded = tasks_.size(),
                    .urgent = tasks_.urgent(),
                    .orphans = orphans_.found(),
                    .is_stopped = stopped_by().has_value(),
                    .waiting_workers = hand_out_.waiting(),
                    .schedules = records_.schedules().size(),
                    .commits = written.commits,
                    .committed_tasks = written.tasks,
                    .lateness = lateness_.fired(),
                    .late = lateness_.late(),
                    .commit_time = std::move(written.time)};
  if (most_queues == 0) return stats;
  const std::vector<const Queue*> shown = queues_.largest(most_queues);
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
                 .timers = tasks_.timers().size(),
                 .slots = {}};
  const milliseconds shift =
      view.now.time_since_epoch() - milliseconds{static_cast<std::int64_t>(time_.now())};
  const auto instant = [shift](Tick tick) {
    return WallTime{milliseconds{static_cast<std::int64_t>(tick)} + shift};
  };
  for (const WheelSlot& slot : tasks_.timers().slots()) {
    view.slots.push_back({.level = slot.level,
                          .index = slot.index,
                          .from = instant(slot.first),
                          .until = instant(slot.last + 1),
                          .count = slot.count});
  }
  return view;
}

Result<Forecast> Engine::forecast(std::chrono::milliseconds span, std::size_t bins) const {
  if (stopped_by()) return *stopped_by();
  TRY(validate_forecast(span, bins));
  return records_.due_counts().forecast(time_.wall_now(), span, bins);
}

Result<TaskPage> Engine::tasks_after(TaskId after, std::size_t limit) {
  if (stopped_by()) return *stopped_by();
  return store_.read_by_id(after, limit);
}

}  // namespace detent
