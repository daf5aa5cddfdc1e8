// What callers ask of the engine and what it answers, as values; every protocol translates to and
// from these.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "task/lifecycle.h"
#include "task/task.h"

namespace detent {

/// When a task is due: so long after it is accepted, or at a date.
using Due = std::variant<std::chrono::milliseconds, WallTime>;

/// What of a task is changed; what is not given stays.
struct TaskEdit {
  std::optional<Due> due = {};
  std::optional<std::uint32_t> priority = {};
  std::optional<Payload> payload = {};
  std::optional<std::string> webhook = {};  // empty: it has none of its own any more
  std::optional<TaskHeaders> headers = {};  // all of them
};

struct ScheduleRequest {
  std::string queue;
  Payload payload = {};
  TaskRules rules = {};
  Due due = std::chrono::milliseconds{0};
  std::string key = {};      // may be empty; ≤ kMaxKeyBytes of UTF-8 without control characters
  std::string webhook = {};  // Task::webhook
  TaskHeaders headers = {};
};

/// Refuses what may not be stored, naming the field: queue name, payload size (too_large), delay
/// (0 … kMaxDelay), due date (1970 … 9999), attempts, visibility timeout, backoff, key, webhook,
/// headers. Durations beyond their bound are refused, never cut.
Result<void> validate(const ScheduleRequest& request);
/// The same for all of a task, as it may come from another store: its id, its attempts too.
Result<void> validate(const Task& task);
/// The same for a due time, for the rules, and for what is changed, alone.
Result<void> validate(const Due& due);
Result<void> validate(const TaskRules& rules);
Result<void> validate(const TaskEdit& edit);

/// A hash of what was asked for, as it was sent, but for its trace: equal requests have equal ones.
/// It is stored with the key, so it must stay the same for ever. Not for secrets: FNV-1a, 64 bits.
std::uint64_t content_hash(const ScheduleRequest& request) noexcept;

/// Who holds a task, and since when.
struct LeaseHolder {
  WallTime since{};
  std::string worker = {};  // as it named itself; may be empty
  LatenessParts late = {};  // as of an Attempt; none when the server was started since

  friend bool operator==(const LeaseHolder&, const LeaseHolder&) = default;
};

/// A task and where it stands at the moment it was looked at.
struct TaskSnapshot {
  Task task = {};
  TaskState state = TaskState::scheduled;
  bool was_there = false;                  // schedule() found it by its key
  std::optional<LeaseHolder> holder = {};  // told by Engine::get() of a leased one
};

/// What becomes of a task whose lease runs out: the attempt has failed (backoff, dead after the
/// last), or it is ready again at once and never dead.
enum class RunOut : std::uint8_t { fails, is_ready_again };

struct LeaseRequest {
  std::string queue;
  std::size_t max = 1;                                          // 1 … kMaxLeaseTasks
  std::optional<std::chrono::milliseconds> visibility_timeout;  // else the task's, else 60 s
  std::string worker;  // for people; may be empty; ≤ kMaxWorkerBytes
  RunOut run_out = RunOut::fails;
  /// More queues to take from: of all of them, the one whose next task is the most urgent.
  std::vector<std::string> other_queues = {};
};
/// Refuses a lease nobody could get, naming the field.
Result<void> validate(const LeaseRequest& request);

/// Opaque to callers. The boot epoch makes a token of an earlier run of the server stale.
struct LeaseToken {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;  // the low bits number the shard, as in a TaskId

  friend bool operator==(const LeaseToken&, const LeaseToken&) = default;
};
/// One token, one text: what parse_lease_token reads is exactly what to_string writes.
std::string to_string(LeaseToken token);
std::optional<LeaseToken> parse_lease_token(std::string_view text) noexcept;

struct LeasedTask {
  Task task;
  LeaseToken lease;
  std::uint32_t attempt = 1;  // counted from 1
  WallTime lease_until{};
  std::chrono::milliseconds lateness{0};  // handed out − due; never negative
};

/// What the deliverer of webhooks asks for.
struct DeliveryRequest {
  std::size_t max = 1;                                          // 1 … kMaxLeaseTasks
  std::optional<std::chrono::milliseconds> visibility_timeout;  // else the task's, else 60 s
  std::string worker = "webhook";  // its name in the task's history; ≤ kMaxWorkerBytes
};
/// As the one above.
Result<void> validate(const DeliveryRequest& request);

/// A task that goes to a webhook, leased to the deliverer.
struct Delivery {
  LeasedTask leased;
  std::string url;                     // the task's own webhook, or its queue's
  std::vector<std::string> keys = {};  // of its queue, see QueueWebhook; none: the server's signs
};

/// What became of one lease in complete or fail. `conflict`: the lease is no longer held, nothing
/// changed. `dead`: the attempt that failed was the last.
enum class LeaseOutcome : std::uint8_t { done, dead, conflict };
std::string_view to_string(LeaseOutcome outcome) noexcept;

/// In which counts of its task a release is, durably: in none (then nothing is written, unless
/// something else changes), as a lease that has ended, or as a release, too.
enum class ReleaseCount : std::uint8_t { none, lease, release };

struct FailRequest {
  LeaseToken lease;
  std::optional<std::chrono::milliseconds> delay;  // else the task's backoff
  std::chrono::milliseconds least_delay{0};        // a shorter backoff becomes this long
  std::string error;                               // cut to kMaxErrorBytes
};

}  // namespace detent
