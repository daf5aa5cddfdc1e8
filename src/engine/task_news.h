// What happens to tasks: counted, and told to those who watch.
//
// While nobody watches, to tell is one branch (change_feed.h). What is told reaches them once it is
// durable: whoever commits says so. Thread-compatible.
#pragma once

#include "base/result.h"
#include "engine/change_feed.h"
#include "engine/engine_time.h"
#include "engine/queue.h"
#include "task/task_change.h"
#include "task/task_stats.h"

namespace detent {

class TaskNews {
 public:
  /// Both must outlive it; `feed` may be null: nobody watches.
  TaskNews(const EngineTime& time, ChangeFeed* feed) noexcept : time_(time), feed_(feed) {}

  void tell(TaskId id, const Queue& queue, TaskEvent event, TaskState state) {
    if (feed_ == nullptr || !feed_->is_watched()) return;
    feed_->note({.id = id,
                 .queue = queue.record.queue,
                 .event = event,
                 .state = state,
                 .at = time_.wall_now()});
  }
  /// What was told up to now is durable, or may not be.
  void publish(const Result<void>& committed) {
    if (feed_ == nullptr) return;
    if (committed) {
      feed_->publish();
    } else {
      feed_->drop();
    }
  }

  /// Since the engine was opened.
  TaskCounters& counters() noexcept { return counters_; }
  const TaskCounters& counters() const noexcept { return counters_; }

 private:
  const EngineTime& time_;
  ChangeFeed* const feed_;
  TaskCounters counters_;
};

}  // namespace detent
