// Counts the events of tasks, and reports them to the watcher.
//
// While no watcher is connected, a report costs one branch (change_feed.h). The watcher gets the
// reports once they are durable: the code that commits calls publish(). Thread-compatible.
#pragma once

#include "base/result.h"
#include "engine/queues/queue.h"
#include "engine/records/change_feed.h"
#include "engine/values/engine_time.h"
#include "task/task_change.h"
#include "task/task_stats.h"

namespace detent {

class TaskNews {
 public:
  /// Both must outlive it. `feed` may be null: no watcher.
  TaskNews(const EngineTime& time, ChangeFeed* feed) noexcept : time_(time), feed_(feed) {}

  void tell(TaskId id, const Queue& queue, TaskEvent event, TaskState state) {
    if (feed_ == nullptr || !feed_->is_watched()) return;
    feed_->note({.id = id,
                 .queue = queue.record.queue,
                 .event = event,
                 .state = state,
                 .at = time_.wall_now()});
  }
  /// The result of the commit decides whether the reports are durable.
  void publish(const Result<void>& committed) {
    if (feed_ == nullptr) return;
    if (committed) {
      feed_->publish();
    } else {
      feed_->drop();
    }
  }

  /// The counts since the engine was opened.
  TaskCounters& counters() noexcept { return counters_; }
  const TaskCounters& counters() const noexcept { return counters_; }

 private:
  const EngineTime& time_;
  ChangeFeed* const feed_;
  TaskCounters counters_;
};

}  // namespace detent
