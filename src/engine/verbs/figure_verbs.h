// The figures of the engine and of its queues. They read no record of a task.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/values/engine_stats.h"
#include "engine/verbs/engine_parts.h"
#include "task/forecast.h"
#include "task/history_range.h"
#include "task/task_stats.h"
#include "task/wheel_view.h"

namespace detent {

class FigureVerbs : public VerbGroup {
 public:
  using VerbGroup::VerbGroup;

  /// The settings and counts of a queue. Errors: not_found if it has neither.
  Result<QueueView> queue(const std::string& name) const;
  /// Calls `visit` with the figures of each stored queue after the name `after`, by name, and
  /// whether it is paused, until `visit` returns false. Cost: O(log queues), and O(1) for each
  /// visited queue.
  Result<void> visit_queues(
      std::string_view after,
      const std::function<bool(const QueueStats& stats, bool is_paused)>& visit) const;
  /// The past events of a queue, as far as the engine has counted them (queue_histories.h). Errors:
  /// as queue().
  Result<QueueHistory> queue_history(const std::string& name, const HistoryRange& range);
  /// Errors: not_found.
  Result<QueueDetail> queue_detail(const std::string& name) const;
  /// The figures of the engine, and of the at most `most_queues` queues with the most tasks. Cost:
  /// O(1) for 0, else O(queues); only the chosen queues are copied.
  EngineStats stats(std::size_t most_queues = kAllQueues) const;
  /// The figures of at most `most` queues with a ready task in memory. First is the queue whose
  /// most urgent ready task has been due longest. O(queues with a ready task).
  std::vector<QueueStats> oldest_queues(std::size_t most) const;
  /// The wheel of the tasks in memory. O(slots + timers / 56).
  WheelView wheel() const;
  /// How many live tasks are due in each of `bins` parts of the time from now on. O(bins + minutes
  /// with tasks). Errors: as validate_forecast().
  Result<Forecast> forecast(std::chrono::milliseconds span, std::size_t bins) const;

 private:
  QueueStats stats_of(const Queue& queue) const;
  QueueStats stats_of_all() const;
};

}  // namespace detent
