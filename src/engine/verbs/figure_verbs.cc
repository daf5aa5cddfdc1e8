#include "engine/verbs/figure_verbs.h"

#include <algorithm>
#include <utility>

#include "task/largest_queues.h"

namespace detent {

using std::chrono::milliseconds;

// ---- queues ----

Result<QueueView> FigureVerbs::queue(const std::string& name) const {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(const Queue* const queue, parts_.queues.known(name));
  return QueueView{
      .stats = stats_of(*queue), .bytes = queue->record.bytes, .settings = queue->record.settings};
}

Result<void> FigureVerbs::visit_queues(
    std::string_view after,
    const std::function<bool(const QueueStats& stats, bool is_paused)>& visit) const {
  TRY(parts_.expect_working());
  parts_.queues.visit_by_name(after, [&](const Queue& queue) {
    if (queue.record.number == 0) return true;  // workers wait for it only
    return visit(stats_of(queue), queue.record.settings.paused);
  });
  return ok();
}

Result<QueueHistory> FigureVerbs::queue_history(const std::string& name,
                                                const HistoryRange& range) {
  TRY(parts_.expect_working());
  ASSIGN_OR_RETURN(Queue* const queue, parts_.queues.known(name));
  parts_.news.note_time();
  return parts_.news.histories().of(*queue, range);
}

Result<QueueDetail> FigureVerbs::queue_detail(const std::string& name) const {
  TRY(parts_.expect_working());
  const Queue* const known = parts_.queues.find(name);
  if (known == nullptr) return no_queue(name);
  const Queue& queue = *known;
  QueueDetail detail{.accepted = queue.accepted, .urgent = queue.urgent};
  if (const Tick now = parts_.time.now(); now < queue.paused_until) {
    detail.pause = queue.pause;
    detail.pause_left = milliseconds{queue.paused_until - now};
  }
  return detail;
}

std::vector<QueueStats> FigureVerbs::oldest_queues(std::size_t most) const {
  std::vector<QueueStats> queues;
  queues.reserve(parts_.tasks.queues_with_ready().size());
  for (const Queue* const queue : parts_.tasks.queues_with_ready())
    queues.push_back(stats_of(*queue));
  keep_oldest(queues, most);
  return queues;
}

QueueStats FigureVerbs::stats_of(const Queue& queue) const {
  const std::uint64_t ready = queue.ready_count();
  QueueStats stats{.queue = queue.record.queue,
                   .scheduled = queue.scheduled_count(),
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
  if (first != nullptr) stats.oldest_ready_age = parts_.time.wall_now() - first->due_at;
  if (queue.handed_out_at) {
    stats.last_handed_out_age =
        std::chrono::floor<milliseconds>(parts_.clock.now() - *queue.handed_out_at);
  }
  return stats;
}

// ---- the engine ----

EngineStats FigureVerbs::stats(std::size_t most_queues) const {
  CommitWriter::Written written = parts_.writer.written();
  EngineStats stats{
      .epoch = parts_.epoch,
      .counters = parts_.news.counters(),
      .all = stats_of_all(),
      .queue_count = parts_.queues.size(),
      .queues = {},
      .loaded = parts_.tasks.size(),
      .urgent = parts_.tasks.urgent(),
      .orphans = parts_.orphans.found(),
      .is_stopped = parts_.writer.stopped_by().has_value(),
      .refuses_tasks = parts_.options.intake != nullptr && !parts_.options.intake->is_open(),
      .waiting_workers = parts_.hand_out.waiting(),
      .schedules = parts_.records.schedules().size(),
      .commits = written.commits,
      .committed_tasks = written.tasks,
      .lateness = parts_.lateness.fired(),
      .late = parts_.lateness.late(),
      .commit_time = std::move(written.time)};
  if (most_queues == 0) return stats;
  stats.by_queue = parts_.news.by_queue();
  const std::vector<const Queue*> shown = parts_.queues.largest(most_queues);
  stats.queues.reserve(shown.size());
  for (const Queue* const queue : shown) stats.queues.push_back(stats_of(*queue));
  std::ranges::sort(stats.queues, {}, &QueueStats::queue);
  return stats;
}

QueueStats FigureVerbs::stats_of_all() const {
  const QueueCounts sums = parts_.queues.counts();
  const std::uint64_t ready =
      parts_.tasks.ready() + sums.in_lanes - parts_.tasks.loaded_from_lanes();
  return {.queue = {},
          .scheduled = sums.waiting - ready - parts_.tasks.leases().size(),
          .ready = ready,
          .leased = parts_.tasks.leases().size(),
          .dead = sums.dead,
          .oldest_ready_age = std::nullopt};
}

WheelView FigureVerbs::wheel() const {
  // Six levels reach the year 9999.
  WheelView view{.now = parts_.time.wall_now(),
                 .level_count = 6,
                 .slots_per_level = DenseWheel::kSlotsPerLevel,
                 .timers = parts_.tasks.timers().size(),
                 .slots = {}};
  const milliseconds shift =
      view.now.time_since_epoch() - milliseconds{static_cast<std::int64_t>(parts_.time.now())};
  const auto instant = [shift](Tick tick) {
    return WallTime{milliseconds{static_cast<std::int64_t>(tick)} + shift};
  };
  for (const WheelSlot& slot : parts_.tasks.timers().slots()) {
    view.slots.push_back({.level = slot.level,
                          .index = slot.index,
                          .from = instant(slot.first),
                          .until = instant(slot.last + 1),
                          .count = slot.count});
  }
  return view;
}

Result<Forecast> FigureVerbs::forecast(std::chrono::milliseconds span, std::size_t bins) const {
  TRY(parts_.expect_working());
  TRY(validate_forecast(span, bins));
  return parts_.records.due_counts().forecast(parts_.time.wall_now(), span, bins);
}

}  // namespace detent
