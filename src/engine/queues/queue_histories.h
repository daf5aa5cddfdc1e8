// The histories of single queues: their events in steps of 10 s for the last hour, and in steps of
// 5 min for the last day.
//
// At most kMostQueues queues have a history, so the memory is bounded: a history takes at most 36
// KB, and all of them 3.6 MB. A queue gets a history with its first event, while there is room. A
// request for the history of another queue starts it. If there is no room, it replaces the history
// that was requested longest ago. A history that was never requested counts as the oldest; of
// several, the one whose last event is the oldest.
//
// Steps begin at multiples of their length since 1970, so the histories of the partitions of a
// queue can be added. Steps without an event take no memory. Thread-compatible.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "detent/clock.h"
#include "engine/queues/queue.h"
#include "task/history_range.h"
#include "task/task_stats.h"

namespace detent {

class QueueHistories {
 public:
  static constexpr std::size_t kMostQueues = 100;

  /// The time of the next events. The caller sets it once in a turn, so an event costs no look at
  /// the clock.
  void set_now(WallTime now) noexcept { now_ = now; }

  /// Counts an event of a task of the queue. Events that no history shows are ignored.
  void count(Queue& queue, std::uint64_t TaskCounters::*event);
  /// Call this after count() for a task that is handed out so long after its due time.
  void note_lateness(const Queue& queue, std::chrono::milliseconds late);

  /// The complete steps of the range. Starts the history of the queue if it has none; the answer
  /// then has no steps.
  QueueHistory of(Queue& queue, const HistoryRange& range);

 private:
  static constexpr std::size_t kEvents = 7;

  struct Step {
    std::int64_t index = 0;  // its begin since 1970, in steps
    std::array<std::uint32_t, kEvents> counts{};
    std::uint32_t late_max_ms = 0;
    std::uint64_t late_total_ms = 0;

    void add(const Step& more) noexcept;
  };
  struct Ring {
    std::chrono::milliseconds length;  // of a step
    std::int64_t most;
    std::deque<Step> steps = {};  // those with events, by index

    Step& step_at(WallTime now);
  };
  struct History {
    std::uint64_t number = 0;  // Queue::history of its queue
    std::uint64_t asked = 0;   // a later request has a higher number; 0: never
    WallTime since{};
    Ring fine{.length = HistoryRange::kFineStep,
              .most = HistoryRange::kFineSpan / HistoryRange::kFineStep};
    Ring coarse{.length = HistoryRange::kCoarseStep,
                .most = HistoryRange::kCoarseSpan / HistoryRange::kCoarseStep};

    std::int64_t last_event() const noexcept {
      return coarse.steps.empty() ? 0 : coarse.steps.back().index;
    }
  };

  static QueuePoint point_of(const Step& step, WallTime at, std::chrono::milliseconds span);
  History* find(const Queue& queue) noexcept;
  History& begin(Queue& queue);
  std::size_t oldest() const;

  std::vector<History> histories_;  // the index is Queue::history_index
  std::uint64_t last_number_ = 0;
  std::uint64_t last_asked_ = 0;
  WallTime now_{};
};

}  // namespace detent
