// The requests and answers of the calls of Client (client.h), as plain values.
//
// A later version may add fields, always behind those that are there. Set the fields by their names
// (`{.queue = "orders", .key = "o-1001"}`), and leave out those whose defaults fit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "detent/clock.h"

/// Requests and answers of the client's calls.
namespace detent::client {

using std::chrono::milliseconds;

/// The data of a task, stored byte for byte. With Kind::json, `data` is the text of one JSON value.
struct Payload {
  enum class Kind : std::uint8_t { json, bytes };
  Kind kind = Kind::json;
  std::string data = "null";

  friend bool operator==(const Payload&, const Payload&) = default;
};

/// A due time: a delay from now (0 to 136 years), or a date in the years 1970 to 9999. The server
/// refuses other values with invalid_argument. Dates are whole milliseconds. The caller rounds a
/// finer date: `std::chrono::ceil<milliseconds>(std::chrono::system_clock::now() + 1h)`.
using Due = std::variant<milliseconds, WallTime>;

/// Names a task by the key that its creator chose.
struct TaskKey {
  std::string queue;
  std::string key;

  friend bool operator==(const TaskKey&, const TaskKey&) = default;
};
/// Names a task by the server's id, or by queue and key.
using TaskName = std::variant<std::uint64_t, TaskKey>;

/// The wait after failed attempt n is initial * 2^(n - 1), at most max, and varies by ± 20 %.
struct Backoff {
  milliseconds initial{1'000};
  milliseconds max{3'600'000};

  friend bool operator==(const Backoff&, const Backoff&) = default;
};

/// An HTTP header that a webhook request carries, or that a worker receives.
struct Header {
  std::string name;
  std::string value;

  friend bool operator==(const Header&, const Header&) = default;
};

/// A task to schedule. A task with a `key` can be scheduled again safely: the same request returns
/// the first task. std::nullopt, or "" for `webhook`, means: as the queue is set. The server
/// delivers a task with a webhook itself, so no worker gets this task.
struct NewTask {
  /// What happens if the key already stands for a task that is not leased, or for a dead task.
  /// Without such a task, or if it is leased, `replace` and `postpone` make a new task.
  enum class OnKey : std::uint8_t {
    keep,     // nothing: the answer is that task
    replace,  // the task gets the content and the due time of this one
    postpone  // the task gets only the due time
  };
  std::string queue;
  Payload payload = {};
  Due due = milliseconds{0};
  std::string key = {};
  std::uint32_t priority = 1024;  // lower is more urgent
  std::optional<std::uint32_t> max_attempts = {};
  std::optional<milliseconds> visibility_timeout = {};
  std::optional<Backoff> backoff = {};
  std::string webhook = {};
  std::vector<Header> headers = {};
  OnKey on_key = OnKey::keep;
  /// With `replace` and `postpone`: the task is due at most this long after it was first scheduled.
  std::optional<milliseconds> max_wait = {};
};

/// A change of a task. Fields without a value stay as they are.
struct TaskEdit {
  std::optional<Due> due = {};  // a dead task becomes scheduled again
  std::optional<std::uint32_t> priority = {};
  std::optional<Payload> payload = {};
  std::optional<std::string> webhook = {};          // "": as the queue is set
  std::optional<std::vector<Header>> headers = {};  // replaces all headers
};

/// The state of a task. `completed` and `cancelled` appear only while the queue keeps ended tasks.
enum class TaskState : std::uint8_t { scheduled, ready, leased, dead, completed, cancelled };

/// A task that is stored on the server's disk. `was_there` is true if an earlier request with the
/// same key made the task.
struct ScheduledTask {
  std::uint64_t id = 0;
  std::string queue = {};
  TaskState state = TaskState::scheduled;
  WallTime due_at{};
  bool was_there = false;
};

/// The record of a task, without its history.
struct Task {
  std::uint64_t id = 0;
  std::string queue = {};
  TaskState state = TaskState::scheduled;
  WallTime due_at{};
  WallTime created_at{};
  Payload payload = {};
  std::string key = {};
  std::uint32_t priority = 0;
  std::uint32_t attempts = 0;  // number of ended attempts
  std::string last_error = {};
  // As in NewTask.
  std::optional<std::uint32_t> max_attempts = {};
  std::optional<milliseconds> visibility_timeout = {};
  std::optional<Backoff> backoff = {};
  std::string webhook = {};
  std::vector<Header> headers = {};
};

/// One page of a list. `cursor` leads to the next page; "" means that this is the last page.
struct TaskPage {
  std::vector<Task> tasks;
  std::string cursor;
};

/// The filter of a list. A task must match every field that has a value. `due_after` includes the
/// given instant, `due_before` does not.
struct ListOptions {
  std::optional<std::string> queue = {};
  std::optional<TaskState> state = {};
  std::optional<std::string> key = {};
  std::optional<WallTime> due_after = {};
  std::optional<WallTime> due_before = {};
  std::size_t limit = 100;  // tasks per page, 1 to 1,000
  std::string cursor = {};

  friend bool operator==(const ListOptions&, const ListOptions&) = default;
};

/// Parameters of Client::lease.
struct LeaseOptions {
  std::size_t max = 1;   // number of tasks, 1 to 1,000
  milliseconds wait{0};  // longest wait for the first task if no task is ready; at most 60 s
  std::optional<milliseconds> visibility_timeout = {};  // no value: the task's, or the queue's
  std::string worker = {};                              // name of the worker, shown to people
};

/// A task that a worker has leased until `lease_until`. `lease` is the lease token, which complete,
/// fail, extend and release take.
struct LeasedTask {
  std::uint64_t id = 0;
  std::string lease = {};
  std::uint32_t attempt = 1;  // counted from 1
  std::string queue = {};
  std::string key = {};
  Payload payload = {};
  std::uint32_t priority = 0;
  WallTime due_at{};
  WallTime lease_until{};
  milliseconds lateness{0};  // from `due_at` until the task was leased
  std::vector<Header> headers = {};
};

/// The result of one call for one lease.
enum class LeaseStatus : std::uint8_t {
  done,
  conflict,  // the lease is no longer held; nothing was changed
  dead,      // the failed attempt was the last or a final one, so the task is dead
  // The result is not known, and the lease may still be held: the server did not answer for this
  // lease during all of `retry_for`. Make the call again until the lease expires.
  unavailable,
  error,  // the server failed while it processed this lease
};

/// Parameters of Client::fail.
struct FailOptions {
  std::string error = {};
  std::optional<milliseconds> delay = {};  // without a value: the task's backoff
  /// Further attempts are useless: the tasks are dead now. Requires: no `delay`.
  bool final = false;
};

/// Parameters of Client::release.
struct ReleaseOptions {
  std::optional<milliseconds> delay = {};  // without a value: ready immediately
  std::optional<std::uint32_t> priority = {};
};

/// The settings of a queue; docs/reference/queues.md describes each. A setting without a value has
/// its default.
struct QueueSettings {
  bool paused = false;
  std::optional<std::uint32_t> max_attempts = {};
  std::optional<milliseconds> visibility_timeout = {};
  std::optional<Backoff> backoff = {};
  milliseconds retention{0};
  milliseconds key_retention{600'000};
  std::optional<std::uint64_t> max_tasks = {};
  std::optional<std::uint64_t> max_bytes = {};
  std::optional<std::uint32_t> rate = {};
  std::optional<std::uint32_t> concurrency = {};
  std::string webhook = {};  // "": no webhook
  std::string sink = {};     // "": no sink; a queue has a webhook or a sink, not both
  std::uint32_t partitions = 1;
  std::size_t webhook_keys = 0;  // number of keys that sign; 0: the server's key signs
};

/// A change of a queue's settings. Settings without a value stay as they are. A Limit has two
/// levels: an outer value whose inner value is empty resets the setting to its default.
struct QueueChange {
  template <class T>
  using Limit = std::optional<std::optional<T>>;

  std::optional<bool> paused = {};
  Limit<std::uint32_t> max_attempts = {};
  Limit<milliseconds> visibility_timeout = {};
  Limit<Backoff> backoff = {};
  std::optional<milliseconds> retention = {};
  std::optional<milliseconds> key_retention = {};
  Limit<std::uint64_t> max_tasks = {};
  Limit<std::uint64_t> max_bytes = {};
  Limit<std::uint32_t> rate = {};
  Limit<std::uint32_t> concurrency = {};
  std::optional<std::string> webhook = {};       // "": no webhook
  std::optional<std::string> sink = {};          // "": no sink
  std::optional<std::uint32_t> partitions = {};  // allowed only while the queue does not exist yet
  /// The keys that sign the requests of the new `webhook`. Each is "whsec_" and base64. Without
  /// keys, the server's key signs. Ignored without a new webhook.
  std::vector<std::string> webhook_keys = {};

  friend bool operator==(const QueueChange&, const QueueChange&) = default;
};

/// A queue: its settings, and its number of tasks in each state.
struct Queue {
  std::string name = {};
  std::uint64_t scheduled = 0;
  std::uint64_t ready = 0;
  std::uint64_t leased = 0;
  std::uint64_t dead = 0;
  std::optional<milliseconds> oldest_ready_age = {};
  std::uint64_t bytes = 0;  // total size of the payloads
  QueueSettings settings = {};
};

/// A recurring rule given by a cron expression.
struct CronRule {
  std::string expression;

  friend bool operator==(const CronRule&, const CronRule&) = default;
};
/// A recurring rule that repeats after a fixed time.
struct IntervalRule {
  milliseconds every{0};
  std::optional<WallTime> anchor = {};  // no value: the schedule's start, or now

  friend bool operator==(const IntervalRule&, const IntervalRule&) = default;
};
/// A recurring rule that counts days, weeks, months or years in the calendar.
struct CalendarRule {
  enum class Unit : std::uint8_t { day, week, month, year };
  /// If a month does not have the day of the anchor: take its last day, or leave the month out.
  enum class MonthEnd : std::uint8_t { clamp, skip };
  std::uint32_t every = 1;
  Unit unit = Unit::month;
  MonthEnd month_end = MonthEnd::clamp;
  std::optional<WallTime> anchor = {};  // no value: the schedule's start, or now

  friend bool operator==(const CalendarRule&, const CalendarRule&) = default;
};

/// A recurring schedule to store: its rule, and the task that it makes at each occurrence.
/// docs/guides/recurring.md describes every option.
struct NewSchedule {
  /// The policy for occurrences that the server handles later than `misfire_grace`: no task, one
  /// task for the last of them, or one task for each of the last `misfire_limit`.
  enum class Misfire : std::uint8_t { skip, once, all };
  /// The policy for an occurrence while the previous task has not ended: another task, no task, or
  /// one task when the previous task ends.
  enum class Overlap : std::uint8_t { allow, skip, queue_one };
  /// The policy for a local time that clocks skip when they are put forward, and for a local time
  /// that comes twice when they are put back.
  enum class Gap : std::uint8_t { skip, run_after };
  enum class Repeat : std::uint8_t { first, second, both };

  std::variant<CronRule, IntervalRule, CalendarRule> rule;
  std::string time_zone = "UTC";
  std::string queue = {};
  Payload payload = {};
  std::uint32_t priority = 1024;
  std::optional<std::uint32_t> max_attempts = {};
  std::optional<milliseconds> visibility_timeout = {};
  std::optional<Backoff> backoff = {};
  std::optional<std::uint64_t> count = {};
  std::optional<WallTime> start = {};
  std::optional<WallTime> end = {};
  milliseconds jitter{0};
  Misfire misfire = Misfire::once;
  milliseconds misfire_grace{60'000};
  std::uint32_t misfire_limit = 100;
  Overlap overlap = Overlap::allow;
  std::optional<Gap> gap = {};        // no value: the default of the rule
  std::optional<Repeat> repeat = {};  // no value: the default of the rule

  friend bool operator==(const NewSchedule&, const NewSchedule&) = default;
};

/// A stored recurring schedule.
struct Schedule {
  std::string name = {};
  // active; paused; over: no occurrence is left; broken: the server cannot read the rule or zone
  std::string state = {};
  std::string words = {};  // the rule in plain English
  std::string queue = {};
  std::optional<WallTime> next_at = {};
  std::uint64_t made = 0;                // number of tasks made by occurrences
  NewSchedule definition = {};           // as it was put
  std::string broken = {};               // why the server cannot read the rule or zone; "": it can
  std::optional<WallTime> last_at = {};  // the last occurrence that made a task
  std::uint64_t last_task = 0;           // id of the newest task; 0: no task yet
  std::uint64_t overlapped = 0;          // occurrences without a task because of `overlap`
  std::optional<WallTime> queued_at = {};  // Overlap::queue_one: this occurrence waits
};

/// One page of the schedules. `cursor` leads to the next page; "" means that this is the last page.
struct SchedulePage {
  std::vector<Schedule> schedules;
  std::string cursor;
};

/// The occurrences to make up for: from `from` until before `to`.
struct BackfillRange {
  WallTime from{};
  WallTime to{};
  std::uint64_t limit = 20'000;  // the most occurrences that one call decides, 1 to 20,000
};

/// The result of one call of Client::backfill. If `next` has a value, call again from there.
struct BackfillResult {
  std::uint64_t made = 0;             // number of tasks that the call made
  std::uint64_t there = 0;            // occurrences that already had a task
  std::optional<WallTime> next = {};  // the first occurrence that is not decided yet
};

}  // namespace detent::client
