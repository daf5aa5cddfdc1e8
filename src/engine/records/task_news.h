// Counts the events of tasks, and reports them to the watcher.
//
// While no watcher is connected, a report costs one branch (change_feed.h). The watcher gets the
// reports once they are durable: the code that commits calls publish(). Thread-compatible.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "engine/queues/counted_queues.h"
#include "engine/queues/queue.h"
#include "engine/queues/queue_histories.h"
#include "engine/records/change_feed.h"
#include "engine/values/engine_time.h"
#include "task/task_change.h"
#include "task/task_stats.h"

namespace detent {

class TaskNews {
 public:
  /// All must outlive it. `feed` may be null: no watcher. `counted` may be null: no other engine
  /// shares the metrics.
  TaskNews(const EngineTime& time, ChangeFeed* feed, CountedQueues* counted)
      : time_(time), feed_(feed), counted_(counted != nullptr ? *counted : own_counted_) {
    note_time();
  }
  TaskNews(const TaskNews&) = delete;
  TaskNews& operator=(const TaskNews&) = delete;

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

  /// Counts an event of a task of this queue.
  void count(Queue& queue, std::uint64_t TaskCounters::*event) {
    ++(counters_.*event);
    if (queue.counters == nullptr) queue.counters = &counters_of(queue.record.queue);
    ++(queue.counters->*event);
    histories_.count(queue, event);
  }
  /// Counts a task of this queue that is handed out so long after its due time.
  void count_hand_out(Queue& queue, std::chrono::milliseconds late) {
    count(queue, &TaskCounters::leased);
    histories_.note_lateness(queue, late);
  }
  /// Call this once in a turn: later events count in the step of this time.
  void note_time() noexcept { histories_.set_now(time_.wall_now()); }
  QueueHistories& histories() noexcept { return histories_; }
  /// Counts an event that no queue is known for.
  void count(std::uint64_t TaskCounters::*event, std::uint64_t times = 1) noexcept {
    counters_.*event += times;
  }
  /// The counts since the engine was opened.
  const TaskCounters& counters() const noexcept { return counters_; }

  /// The number of queues with counters of their own.
  static constexpr std::size_t kMostCounted = CountedQueues::kMost;
  /// The name of the counters of all other queues, and of a queue with this name.
  static constexpr const char* kOther = "other";
  /// The counters of the first kMostCounted queues that had an event, in any engine that shares the
  /// metrics, and of kOther. A queue keeps its counters until the engine ends. So no counter ever
  /// decreases, also not that of kOther.
  const std::map<std::string, TaskCounters>& by_queue() const noexcept { return by_queue_; }

 private:
  TaskCounters& counters_of(const std::string& queue) {
    return by_queue_[queue != kOther && counted_.admit(queue) ? queue : kOther];
  }

  const EngineTime& time_;
  ChangeFeed* const feed_;
  CountedQueues own_counted_;
  CountedQueues& counted_;
  TaskCounters counters_;
  QueueHistories histories_;
  std::map<std::string, TaskCounters> by_queue_;  // Queue::counters points to its values
};

}  // namespace detent
