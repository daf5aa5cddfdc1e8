// What an engine is opened with, and what its verbs take and answer beyond the values of task/:
// where a list or a verb over a whole queue goes on, and the answers of single verbs.
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
#include "store/store.h"
#include "task/recurring_schedule.h"
#include "task/request.h"

namespace detent {

class ChangeFeed;

struct EngineOptions {
  /// How far ahead of now tasks are loaded.
  std::chrono::milliseconds window = std::chrono::minutes{10};
  /// Most tasks held in memory, give or take those of one turn; about 300 bytes each. At most a
  /// quarter of them may be leased at a time.
  std::size_t max_loaded = 1'000'000;
  /// How long a commit may wait to be synced, for syncs that are shared by many: what was
  /// acknowledged in that time is lost with the power, though not with the process. 0: never; each
  /// commit is synced before it is acknowledged.
  std::chrono::milliseconds sync_interval{0};
  /// Workers' open leases outlive a graceful stop: close() writes them out, and this takes up those
  /// of the engine before. They outlive a failure of the store, too: take_over_leases(). For those
  /// whose workers are elsewhere and go on meanwhile.
  bool keep_leases = false;
  /// In all ids and leases that the engine makes; below 2^TaskId::kShardBits.
  std::uint64_t shard = 0;
  /// Seeds the jitter of retries.
  std::uint64_t seed = 0;
  /// Is told what happens to tasks; must outlive the engine. Null: nobody is.
  ChangeFeed* changes = nullptr;
  /// Of several engines that have a part of a queue each: whether this one takes a task of this key
  /// (none: "") into a queue of so many partitions. Empty: any. Constant.
  std::function<bool(std::string_view queue, std::uint32_t partitions, std::string_view key)>
      is_here = {};
};

/// Where a verb over a whole queue goes on: after this place, with tasks up to this id (0: all that
/// have been accepted). A new one begins.
struct QueueCursor {
  Place after = begin_of(Lane::due);
  TaskId last_id;
};
/// What one step of first_scheduled() found.
struct ScheduledStep {
  std::optional<TaskSnapshot> found;
  Place next = begin_of(Lane::due);
};
/// A ready task's place among others: the least is handed out first.
struct ReadyHead {
  std::uint32_t priority = 0;
  WallTime due_at{};
  TaskId id;

  friend auto operator<=>(const ReadyHead&, const ReadyHead&) = default;
};
/// What one step of a verb over a whole queue did.
struct QueueStep {
  std::size_t count = 0;            // tasks changed
  std::optional<QueueCursor> next;  // none: it is done
};

/// What ends a wait for a task.
using LeaseDone = UniqueFunction<void(Result<std::vector<LeasedTask>>)>;
/// Queues whose webhook is one of these wait, but for their tasks with one of their own: what it
/// stands for takes nothing now.
using HeldWebhooks = std::vector<std::string>;
using DeliveriesDone = UniqueFunction<void(Result<std::vector<Delivery>>)>;

struct PutSchedule {
  ScheduleView view;
  bool was_there = false;
};

/// More than there can be.
inline constexpr std::size_t kAllQueues = std::numeric_limits<std::size_t>::max();

/// Where a list of all tasks begins.
inline constexpr Place kListStart = begin_of(Lane::dead);
/// Part of a list of tasks, which may be short or empty, and where it goes on; none: it is over.
struct TaskList {
  std::vector<TaskSnapshot> tasks;
  std::optional<Place> next;
};

}  // namespace detent
