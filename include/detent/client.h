// Client: calls a Detent server over HTTP. Requests and results are plain values.
//
//     auto client = detent::Client::create("http://127.0.0.1:7070").value();
//     client.schedule({.queue = "orders", .due = 30 * 24h, .key = "o-1001"}).value();
//     const auto paid = client.cancel(detent::client::TaskKey{"orders", "o-1001"});
//     if (!paid) complain(paid.error().message);
//
// worker.h has Worker, which runs due tasks. The page docs/reference/http.md describes each field
// and the guarantees of the server. The page docs/guides/clients.md compares this client with the
// clients of other languages.
//
// Retries. If the server is away, restarts or answers 503, the client repeats a call for up to
// `retry_for`. It honours the server's Retry-After. The client does not repeat a call whose second
// execution would have an effect of its own:
//
// - schedule and schedule_many, for tasks without a key: the repetition would make two tasks.
// - trigger_schedule: the repetition would make two tasks.
// - purge and redrive: the repetition would also affect tasks that arrived in between.
//
// There is one exception: if no connection was made, the server cannot have seen the request, and
// the client repeats any call.
//
// Give each task a key. With a key, both this client and your program can safely schedule the task
// again.
//
// ClientError::is_repeated says that the request was sent more than once. Example: the first
// cancel() succeeds, but its answer is lost. The repeated cancel() then fails with `not_found`. A
// repeated lease() returns different tasks. The leases in the lost answer expire at the end of
// their visibility timeout. The server counts an expired lease as a failed attempt, and hands the
// task out again after its backoff.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "detent/check.h"
#include "detent/clock.h"
#include "detent/internal/value_or.h"

namespace detent {

/// The reason why a call failed.
struct ClientError {
  /// The kind of the failure, which tells the caller how to react.
  enum class Code : std::uint8_t {
    invalid_argument,  // the request is wrong; correct it
    forbidden,         // the access token is missing, or does not allow this
    not_found,         // the object does not exist, or no longer exists
    conflict,          // the state forbids this, or the key belongs to another task; read it again
    too_large,         // over a limit, which the message states
    resource_exhausted,  // over a quota or out of disk space; a later call can succeed
    unavailable,         // no answer arrived in time; the change may or may not have been made
    data_loss,           // stored data cannot be read back
    internal,            // an unexpected failure of the server, or an unreadable answer
  };
  Code code = Code::internal;
  int status = 0;            // HTTP status of the answer; 0 if no answer arrived
  std::string message = {};  // for people
  std::string field = {};    // the wrong field of the request; "" if the error is not about a field
  std::string problem = {};  // the server's problem document (JSON); "" if there was no document
  /// True if the request was sent more than once. A `not_found` or `conflict` can then be the
  /// effect of the first request, whose answer was lost.
  bool is_repeated = false;
};

/// Holds a T or a ClientError. The members are has_value(), value(), *, -> and error(). Without a
/// T, value(), * and -> stop the process. Thread safety: as T.
template <class T>
class [[nodiscard]] ClientResult : public internal::ValueOr<T, ClientError> {
 public:
  using internal::ValueOr<T, ClientError>::ValueOr;
};

/// The result of a call without a value: success, or a ClientError.
template <>
class [[nodiscard]] ClientResult<void> {
 public:
  ClientResult() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): `return ClientError{…};` reads well
  ClientResult(ClientError error) : is_done_(false), error_(std::move(error)) {}

  /// Returns true after a success.
  bool has_value() const noexcept { return is_done_; }
  explicit operator bool() const noexcept { return has_value(); }
  /// Stops the process unless has_value().
  void value() const { DETENT_CHECK(has_value()); }
  /// Returns the error. After a success its fields have their default values.
  const ClientError& error() const noexcept { return error_; }

 private:
  bool is_done_ = true;
  ClientError error_;
};

/// Requests and answers of the client's calls.
namespace client {

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
  dead,      // the failed attempt was the last attempt, so the task is dead
  // The result is not known, and the lease may still be held: the server did not answer for this
  // lease during all of `retry_for`. Make the call again until the lease expires.
  unavailable,
  error,  // the server failed while it processed this lease
};

/// Parameters of Client::fail.
struct FailOptions {
  std::string error = {};
  std::optional<milliseconds> delay = {};  // without a value: the task's backoff
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
};
/// A recurring rule that repeats after a fixed time.
struct IntervalRule {
  milliseconds every{0};
  std::optional<WallTime> anchor = {};  // no value: the schedule's start, or now
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
};

/// A stored recurring schedule.
struct Schedule {
  std::string name = {};
  // active; paused; over: no occurrence is left; broken: the server cannot read the rule or zone
  std::string state = {};
  std::string words = {};  // the rule in plain English
  std::string queue = {};
  std::optional<WallTime> next_at = {};
  std::uint64_t made = 0;  // number of tasks made by occurrences
};

}  // namespace client

/// Options of a Client.
struct ClientOptions {
  std::string token = {};    // access token, if the server requires one; "": no token
  std::string ca_file = {};  // PEM file of certificates trusted for https; "": those of the system
  /// Time limit of one try; lease() with a `wait` adds 60 s. Requires: above 0, at most one day.
  std::chrono::milliseconds timeout{30'000};
  /// Total time for which a failed call is repeated; 0: never repeat.
  std::chrono::milliseconds retry_for{15'000};
  Clock* clock = nullptr;  // null: the machine's clock. Otherwise the clock must outlive the client
};

/// Calls one Detent server. Thread-safe. While a call runs, no other call uses its connection. The
/// client opens a connection if all others are in use, and keeps it for later calls. Every method
/// blocks until the server has answered or the client gives up. Every method can fail with
/// `unavailable`, and with each ClientError that the server sends.
class Client {
 public:
  /// Makes a client for the server at `url`, "http://HOST[:PORT]" or "https://…". Does not connect
  /// yet.
  ///
  /// Errors: invalid_argument in these cases:
  ///
  /// - The URL has another form.
  /// - `ca_file` contains no certificate.
  /// - `timeout` is not above 0, or is longer than a day.
  /// - `token` contains a control character, such as the line break at the end of a file.
  static ClientResult<Client> create(std::string url, ClientOptions options = {});
  /// Closes the connections. Requires: no thread is inside a call.
  ~Client();
  /// Moves the client. A moved-from client may only be destroyed or assigned to.
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;

  /// Schedules a task. When this call returns success, the task is on the server's disk. Errors:
  /// conflict if the key belongs to a task with different content.
  ClientResult<client::ScheduledTask> schedule(const client::NewTask& task);
  /// Schedules up to 10,000 tasks in one commit. Returns one result per task, in order. A wrong
  /// task fails alone.
  ClientResult<std::vector<ClientResult<client::ScheduledTask>>> schedule_many(
      std::span<const client::NewTask> tasks);
  /// Returns the record of a task. Errors: not_found.
  ClientResult<client::Task> get(const client::TaskName& task);
  /// Returns one page of the tasks that match every option: first the dead tasks, then the live
  /// tasks in due order, then the ended tasks that their queues keep. A page can be short or even
  /// empty although more tasks follow. Continue from its cursor until the cursor is "".
  ClientResult<client::TaskPage> list(const client::ListOptions& options = {});
  /// Cancels a task. Errors: not_found; conflict while the task is leased.
  ClientResult<void> cancel(const client::TaskName& task);
  /// Cancels up to 10,000 tasks in one commit. Returns one result per task, in order. Name all
  /// tasks by id, or all by keys of one queue; otherwise the call fails with invalid_argument.
  ClientResult<std::vector<ClientResult<void>>> cancel_many(
      std::span<const client::TaskName> tasks);
  /// Gives a task another due time. A dead task becomes scheduled again, with the full number of
  /// attempts. Errors: as cancel(); invalid_argument for a wrong due time.
  ClientResult<client::ScheduledTask> move(const client::TaskName& task, const client::Due& due);
  /// Gives up to 10,000 tasks the same new due time. Limits and result as cancel_many().
  ClientResult<std::vector<ClientResult<client::ScheduledTask>>> move_many(
      std::span<const client::TaskName> tasks, const client::Due& due);
  /// Makes a task due now. Errors: as cancel().
  ClientResult<client::ScheduledTask> run_now(std::uint64_t id);

  // Leases. Worker (worker.h) makes all of these calls for you. A call takes at most 10,000 leases.

  /// Leases ready tasks of a queue, the most urgent first. If no task is ready, waits for up to
  /// `options.wait`.
  ClientResult<std::vector<client::LeasedTask>> lease(const std::string& queue,
                                                      const client::LeaseOptions& options = {});
  /// Reports that the tasks of these leases are done. Returns one status per lease, in order. A
  /// repeated call may return `conflict` for a lease that the first call already completed.
  ClientResult<std::vector<client::LeaseStatus>> complete(std::span<const std::string> leases);
  /// Ends the current attempt of these tasks as failed. The tasks are tried again later; after its
  /// last attempt a task is dead. Returns one status per lease, in order.
  ClientResult<std::vector<client::LeaseStatus>> fail(std::span<const std::string> leases,
                                                      const client::FailOptions& options = {});
  /// Extends leases to `by` from now (1 ms to 30 days). A lease that already ends later keeps its
  /// end. Returns one status per lease, in order.
  ClientResult<std::vector<client::LeaseStatus>> extend(std::span<const std::string> leases,
                                                        std::chrono::milliseconds by);
  /// Gives tasks back to their queue. The attempt does not count. Returns one status per lease, in
  /// order.
  ClientResult<std::vector<client::LeaseStatus>> release(
      std::span<const std::string> leases, const client::ReleaseOptions& options = {});

  // Queues. Calls with the name of an unknown queue fail with not_found, except change_queue.

  /// Returns all queues, sorted by name.
  ClientResult<std::vector<client::Queue>> queues();
  /// Returns one queue.
  ClientResult<client::Queue> queue(const std::string& name);
  /// Changes the settings that have a value. Creates the queue if it does not exist.
  ClientResult<client::Queue> change_queue(const std::string& name,
                                           const client::QueueChange& change);
  /// Removes a queue. Errors: conflict while the queue has tasks.
  ClientResult<void> remove_queue(const std::string& name);
  /// Stops leasing tasks of the queue. Tasks that are leased already can still be completed.
  ClientResult<client::Queue> pause(const std::string& name);
  /// Allows leasing tasks of the queue again.
  ClientResult<client::Queue> resume(const std::string& name);
  /// Removes all tasks of the queue that are not leased. Returns the number of removed tasks.
  ClientResult<std::uint64_t> purge(const std::string& name);
  /// Makes all dead tasks of the queue due now, with the full number of attempts. Returns the
  /// number of these tasks.
  ClientResult<std::uint64_t> redrive(const std::string& name);

  /// Creates or replaces a recurring schedule.
  ClientResult<client::Schedule> put_schedule(const std::string& name,
                                              const client::NewSchedule& schedule);
  /// Returns one recurring schedule. Errors: not_found.
  ClientResult<client::Schedule> get_schedule(const std::string& name);
  /// Returns all recurring schedules, sorted by name.
  ClientResult<std::vector<client::Schedule>> schedules();
  /// Returns the next `count` occurrences of a schedule (1 to 1,000). Errors: not_found.
  ClientResult<std::vector<WallTime>> next_occurrences(const std::string& name,
                                                       std::size_t count = 10);
  /// Stops making tasks for occurrences.
  ClientResult<client::Schedule> pause_schedule(const std::string& name);
  /// Makes tasks for occurrences again.
  ClientResult<client::Schedule> resume_schedule(const std::string& name);
  /// Makes one task now, in addition to the occurrences.
  ClientResult<client::ScheduledTask> trigger_schedule(const std::string& name);
  /// Removes a recurring schedule. Tasks that it has already made stay.
  ClientResult<void> remove_schedule(const std::string& name);

  /// Returns the server's statistics as JSON: the answer of GET /v1/stats (docs/reference/http.md).
  ClientResult<std::string> stats();

 private:
  friend class Worker;
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl) noexcept;

  std::unique_ptr<Impl> impl_;
};

}  // namespace detent
