// The requests to the engine and its answers, as values. Every protocol converts to and from these
// values.
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

/// When a task is due: a delay after it is accepted, or an instant.
using Due = std::variant<std::chrono::milliseconds, WallTime>;

/// A change of a task. Fields that are not given stay unchanged.
struct TaskEdit {
  std::optional<Due> due = {};
  std::optional<std::uint32_t> priority = {};
  std::optional<Payload> payload = {};
  std::optional<std::string> webhook = {};  // "": remove the task's own webhook
  std::optional<TaskHeaders> headers = {};  // replaces all headers
};

/// What a request does if its key already stands for a live or dead task. `keep`: nothing, the
/// answer is that task. `replace`: the task gets the content and the due time of the request.
/// `postpone`: the task gets only the due time. A leased task cannot change any more, so with
/// `replace` and `postpone` its key goes to a new task.
enum class OnKey : std::uint8_t { keep, replace, postpone };
std::string_view to_string(OnKey on_key) noexcept;

struct ScheduleRequest {
  std::string queue;
  Payload payload = {};
  TaskRules rules = {};
  Due due = std::chrono::milliseconds{0};
  std::string key = {};      // may be empty; ≤ kMaxKeyBytes of UTF-8 without control characters
  std::string webhook = {};  // Task::webhook
  TaskHeaders headers = {};
  OnKey on_key = OnKey::keep;
  /// The task is due at most this long after it was created, however often it is replaced or
  /// postponed.
  std::optional<std::chrono::milliseconds> max_wait = {};
};

/// Rejects a request that must not be stored, with the name of the field. Checks the queue name,
/// payload size (too_large), delay (0 … kMaxDelay), due date (1970 … 9999), attempts, visibility
/// timeout, backoff, key, webhook and headers, and that on_key has a key, and max_wait an on_key. A
/// duration above its limit is rejected, never shortened.
Result<void> validate(const ScheduleRequest& request);
/// Also checks the other fields of a task, such as id and attempts. For tasks from another store.
Result<void> validate(const Task& task);
/// The error for a task of a dump whose id belongs to a shard that cannot have the task here. `why`
/// says how the shard is wrong.
Error wrong_shard(std::string why, std::string field);
/// Checks one part of a request: a due time, rules, or an edit.
Result<void> validate(const Due& due);
Result<void> validate(const TaskRules& rules);
Result<void> validate(const TaskEdit& edit);

/// A hash of the task that the request asks for, as it was sent, without its trace. Equal requests
/// have equal hashes. The hash is stored with the key, so its algorithm must never change. Not for
/// secrets: FNV-1a, 64 bits.
std::uint64_t content_hash(const ScheduleRequest& request) noexcept;

/// The holder of a lease.
struct LeaseHolder {
  WallTime since{};
  std::string worker = {};  // the worker's name for itself; may be empty
  LatenessParts late = {};  // as in Attempt; all 0 if the server has been restarted since

  friend bool operator==(const LeaseHolder&, const LeaseHolder&) = default;
};

/// A task and its state at one moment.
struct TaskSnapshot {
  Task task = {};
  TaskState state = TaskState::scheduled;
  bool was_there = false;                  // schedule() found it by its key
  std::optional<LeaseHolder> holder = {};  // set by Engine::get() and list() for a leased task
  std::optional<WallTime> died_at = {};    // likewise for a dead task
};

/// The effect of an expired lease. `fails`: the attempt failed (backoff, dead after the last
/// attempt). `is_ready_again`: the task is ready immediately and never becomes dead.
enum class RunOut : std::uint8_t { fails, is_ready_again };

struct LeaseRequest {
  std::string queue;
  std::size_t max = 1;                                          // 1 … kMaxLeaseTasks
  std::optional<std::chrono::milliseconds> visibility_timeout;  // default: the task's, then 60 s
  std::string worker;  // for people; may be empty; ≤ kMaxWorkerBytes
  RunOut run_out = RunOut::fails;
  /// More queues. The task comes from the queue whose next task is the most urgent.
  std::vector<std::string> other_queues = {};
};
/// Rejects a lease request that is never possible, with the name of the field.
Result<void> validate(const LeaseRequest& request);

/// Opaque to callers. The epoch rises at each start of the server, so that tokens of an earlier run
/// are refused.
struct LeaseToken {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;  // the low bits are the shard, as in a TaskId

  friend bool operator==(const LeaseToken&, const LeaseToken&) = default;
};
/// Each token has exactly one text: parse_lease_token accepts only the output of to_string.
std::string to_string(LeaseToken token);
std::optional<LeaseToken> parse_lease_token(std::string_view text) noexcept;

struct LeasedTask {
  Task task;
  LeaseToken lease;
  std::uint32_t attempt = 1;  // counted from 1
  WallTime lease_until{};
  std::chrono::milliseconds lateness{0};  // time of the hand-out minus due time; never negative
};

/// A request of the deliverer of webhooks.
struct DeliveryRequest {
  std::size_t max = 1;                                          // 1 … kMaxLeaseTasks
  std::optional<std::chrono::milliseconds> visibility_timeout;  // default: the task's, then 60 s
  std::string worker = "webhook";  // the name in the task's history; ≤ kMaxWorkerBytes
};
/// Errors: as for LeaseRequest.
Result<void> validate(const DeliveryRequest& request);

/// A task that goes to a webhook, leased to the deliverer.
struct Delivery {
  LeasedTask leased;
  std::string url;  // the task's own webhook, or its queue's
  /// The keys of the queue that sign the request, see QueueWebhook. Empty: the server's keys sign.
  std::vector<std::string> keys = {};
};

/// The result of complete or fail for one lease. `conflict`: the lease is no longer held, and the
/// task is unchanged. `dead`: the last attempt failed.
enum class LeaseOutcome : std::uint8_t { done, dead, conflict };
std::string_view to_string(LeaseOutcome outcome) noexcept;

/// How a release counts in the tally of its task, durably. `none`: not at all, so the record is
/// written only if another field changes. `lease`: as an ended lease. `release`: as an ended lease
/// and as a release.
enum class ReleaseCount : std::uint8_t { none, lease, release };

struct FailRequest {
  LeaseToken lease;
  std::optional<std::chrono::milliseconds> delay;  // if not set: the task's backoff
  std::chrono::milliseconds least_delay{0};        // a shorter backoff becomes this long
  std::string error;                               // cut to kMaxErrorBytes
};

}  // namespace detent
