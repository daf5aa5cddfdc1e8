// The options of an engine, and the arguments and answers of its verbs that are not in task/. These
// are the cursors of lists and of verbs over a whole queue, and the answers of single verbs.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "engine/values/task_intake.h"
#include "store/store.h"
#include "task/recurring_schedule.h"
#include "task/request.h"

namespace detent {

class ChangeFeed;
class CountedQueues;

/// Begins each error that an engine returns after its store failed. The cause follows.
inline constexpr std::string_view kStoreFailed =
    "the store failed: requests are refused until it is open again";

struct EngineOptions {
  /// How far ahead of now tasks are loaded.
  std::chrono::milliseconds window = std::chrono::minutes{10};
  /// The most tasks in memory. The tasks of one turn may exceed it. A task takes about 300 bytes.
  /// At most a quarter of the tasks may be leased at a time.
  std::size_t max_loaded = 1'000'000;
  /// How long a commit may wait for its sync, so that many commits share one sync. Requests that
  /// were acknowledged in this time survive the end of the process, but not a power cut. 0: each
  /// commit is synced before it is acknowledged.
  std::chrono::milliseconds sync_interval{0};
  /// Keep the open leases of workers over a graceful stop. close() writes the leases, and the next
  /// engine takes them over. The leases also survive a failure of the store: take_over_leases().
  /// For workers that run elsewhere and continue during the stop.
  bool keep_leases = false;
  /// The number of the shard, which is a part of all ids and leases that the engine creates. It
  /// must be less than 2^TaskId::kShardBits.
  std::uint64_t shard = 0;
  /// Seeds the jitter of retries.
  std::uint64_t seed = 0;
  /// Receives the changes of tasks; must outlive the engine. Null: no changes are reported.
  ChangeFeed* changes = nullptr;
  /// The queues with counters of their own, for several engines whose metrics are added up; must
  /// outlive the engine. Null: the engine decides alone.
  CountedQueues* counted = nullptr;
  /// Decides whether new tasks are accepted; must outlive the engine. Null: they always are.
  const TaskIntake* intake = nullptr;
  /// For several engines that each have a part of a queue: whether this engine accepts a task with
  /// this key ("": no key) into a queue with this number of partitions. Empty: it accepts all
  /// tasks. The result must not change.
  std::function<bool(std::string_view queue, std::uint32_t partitions, std::string_view key)>
      is_here = {};
};

/// The position of a verb over a whole queue: it continues after this place, with tasks up to this
/// id (0: all accepted tasks). A default cursor begins.
struct QueueCursor {
  Place after = begin_of(Lane::due);
  TaskId last_id;
};
/// The result of one step of first_scheduled().
struct ScheduledStep {
  std::optional<TaskSnapshot> found;
  Place next = begin_of(Lane::due);
};
/// The place of a ready task in the order of hand-outs. The task with the least place is next.
struct ReadyHead {
  std::uint32_t priority = 0;
  WallTime due_at{};
  TaskId id;

  friend auto operator<=>(const ReadyHead&, const ReadyHead&) = default;
};
/// The result of one step of a verb over a whole queue.
struct QueueStep {
  std::size_t count = 0;            // tasks changed
  std::optional<QueueCursor> next;  // empty: the verb is complete
};

/// The callback at the end of a wait for a task.
using LeaseDone = UniqueFunction<void(Result<std::vector<LeasedTask>>)>;
/// Webhook URLs that do not accept messages now. If a queue has one of these webhooks, its tasks
/// wait, except tasks with their own webhook.
using HeldWebhooks = std::vector<std::string>;
using DeliveriesDone = UniqueFunction<void(Result<std::vector<Delivery>>)>;

struct PutSchedule {
  ScheduleView view;
  bool was_there = false;
};

/// More than the greatest possible number of queues.
inline constexpr std::size_t kAllQueues = std::numeric_limits<std::size_t>::max();

/// Where a list of all tasks begins.
inline constexpr Place kListStart = begin_of(Lane::dead);
/// One part of a list of tasks, which may be short or empty, and the place of the next part. Empty
/// place: the list is complete.
struct TaskList {
  std::vector<TaskSnapshot> tasks;
  std::optional<Place> next;
};

}  // namespace detent
