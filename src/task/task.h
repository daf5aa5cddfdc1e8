// A task, the durable unit of work, as a value. lifecycle.h defines the allowed verbs.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detent/clock.h"
#include "task/lateness.h"
#include "task/limits.h"
#include "task/webhook.h"

namespace detent {

/// Identifies a task forever. Ids rise in the order of acceptance and are never reused. They are
/// below 2^53, so they are exact in JSON and in a double. The low bits are the number of the shard
/// that created the task.
struct TaskId {
  std::uint64_t value = 0;  // 0 names no task

  static constexpr int kShardBits = 8;
  static constexpr std::uint64_t kEnd = std::uint64_t{1} << 53;

  constexpr std::uint64_t shard() const noexcept {
    return value % (std::uint64_t{1} << kShardBits);
  }
  /// The next id on the same shard.
  constexpr TaskId next() const noexcept { return {value + (std::uint64_t{1} << kShardBits)}; }
  /// The id of another shard with the same count. Its next() is above this id.
  constexpr TaskId on_shard(std::uint64_t shard) const noexcept {
    return {(value >> kShardBits << kShardBits) | shard};
  }
  friend auto operator<=>(const TaskId&, const TaskId&) = default;
};

/// Parses a decimal id: 1 … 2^53 − 1, without sign, space or leading zero.
std::optional<TaskId> parse_task_id(std::string_view text) noexcept;
std::string to_string(TaskId id);

/// True for 1 … 200 bytes of letters, digits and - + / ; : . $ _ ( ), not starting with a hyphen.
/// The names of tubes of beanstalk, and a colon, which beanstalkd and some of its clients refuse.
bool is_queue_name(std::string_view name) noexcept;

/// Stored byte for byte and never interpreted. The kind decides how protocols show it.
struct Payload {
  enum class Kind : std::uint8_t { json, bytes };
  Kind kind = Kind::json;
  std::string data = "null";

  friend bool operator==(const Payload&, const Payload&) = default;
};

/// The wait before the next attempt: initial × 2^(attempts − 1), at most `max`, ± 20 %.
struct Backoff {
  std::chrono::milliseconds initial{1'000};
  std::chrono::milliseconds max{3'600'000};

  friend bool operator==(const Backoff&, const Backoff&) = default;
};

/// The rules of a task. The defaults of the queue apply to rules that the task does not set.
struct TaskRules {
  std::uint32_t priority = kDefaultPriority;
  std::optional<std::uint32_t> max_attempts;
  std::optional<std::chrono::milliseconds> visibility_timeout;
  std::optional<Backoff> backoff;

  friend bool operator==(const TaskRules&, const TaskRules&) = default;
};

/// An ended attempt. The attempt that completed a task is stored only if tasks are kept after their
/// end, and it has no error.
struct Attempt {
  WallTime started_at{};
  WallTime ended_at{};
  std::string worker = {};  // ≤ kMaxWorkerBytes, may be empty
  std::string error = {};   // ≤ kMaxErrorBytes
  LatenessParts late = {};  // why it began late; all 0 below kLate

  friend bool operator==(const Attempt&, const Attempt&) = default;
};

/// Counts of the events of a task. Leases are counted when they end; a release or an expiry also
/// counts as a lease.
struct TaskTally {
  std::uint32_t leases = 0;
  std::uint32_t run_outs = 0;
  std::uint32_t releases = 0;
  std::uint32_t burials = 0;
  std::uint32_t redrives = 0;          // requests that made it due now, while dead or scheduled
  std::chrono::milliseconds delay{0};  // delay of the last release; 0 again after a redrive

  friend bool operator==(const TaskTally&, const TaskTally&) = default;
};

/// Whether a task can still run. Completed and cancelled tasks are kept only in a queue with
/// retention.
enum class Standing : std::uint8_t { live, dead, completed, cancelled };

/// The stored form of a task.
struct Task {
  TaskId id;
  std::string queue;
  Payload payload;
  TaskRules rules;
  WallTime due_at{};
  WallTime created_at{};
  std::uint32_t attempts = 0;  // ended attempts
  Standing standing = Standing::live;
  /// Unique in its queue while the server keeps it, which can be longer than the task lives. May be
  /// empty.
  std::string key = {};
  std::vector<Attempt> history = {};  // the last kMaxHistory attempts, oldest first
  TaskTally tally = {};
  /// The URL to which the task is delivered; it is then not leased to workers. Empty: the webhook
  /// of its queue applies, or workers lease the task if the queue has no webhook.
  std::string webhook = {};
  TaskHeaders headers = {};  // sent with the webhook's request; workers also get them

  friend bool operator==(const Task&, const Task&) = default;
};

/// Adds an attempt to the history. If the history is full, its oldest attempt is removed.
void add_attempt(Task& task, Attempt attempt);
/// The error of the last attempt. Empty if there was no attempt or no error.
std::string_view last_error(const Task& task) noexcept;

}  // namespace detent
