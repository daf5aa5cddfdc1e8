// Client: the verbs of a Detent server over HTTP, values in and out.
//
//     auto client = detent::Client::create("http://127.0.0.1:7070").value();
//     client.schedule({.queue = "orders", .due = 30 * 24h, .key = "o-1001"}).value();
//     const auto paid = client.cancel(detent::client::TaskKey{"orders", "o-1001"});
//     if (!paid) complain(paid.error().message);
//
// worker.h works on what is due. What the server promises, and each field, is in
// docs/reference/http.md; docs/guides/clients.md has this client beside those in Python and
// TypeScript.
//
// Calls that may be repeated are, for up to `retry_for`, when the server is away, restarts or
// answers 503 (with its Retry-After). That is every call but those of which twice is not once:
//
//     schedule and schedule_many of tasks without a key      would make two tasks
//     trigger_schedule                                       likewise
//     purge, redrive                                         would take tasks that came in between
//
// What the server cannot have seen, because there was no connection, is tried again in any case.
// Give a task a key and scheduling it is safe to repeat, by this client and by you.
// ClientError::is_repeated tells that the request was sent more than once: cancel() is then
// `not_found` when its first time was carried out and only the answer lost. A repeated lease()
// takes other tasks; those of the lost answer come back when their visibility timeout is over.
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

/// Why a call was not done.
struct ClientError {
  /// Says what the caller can do about it.
  enum class Code : std::uint8_t {
    invalid_argument,    // the request is wrong; fix it
    forbidden,           // not with this token, or none
    not_found,           // it is not there, or not any more
    conflict,            // its state forbids this, or its key stands for another; read it again
    too_large,           // over a limit that the message states
    resource_exhausted,  // over a quota or out of space; later may succeed
    unavailable,         // no answer, or none yet; what was to be changed may have been changed
    data_loss,           // what was stored cannot be read back
    internal,            // an unexpected failure of the server, or an answer that is none
  };
  Code code = Code::internal;
  int status = 0;            // of the answer; 0 when there was none
  std::string message = {};  // for people
  std::string field = {};    // of the request that is wrong; "" when none is
  std::string problem = {};  // the server's problem document, JSON; "" when there was none
  /// The request was sent more than once: `not_found` or `conflict` may be the effect of the first
  /// time, whose answer was lost.
  bool is_repeated = false;
};

/// A T, or why there is none: has_value(), value(), *, -> and error(). value(), * and -> stop the
/// process when there is none. A value: as thread-safe as T.
template <class T>
class [[nodiscard]] ClientResult : public internal::ValueOr<T, ClientError> {
 public:
  using internal::ValueOr<T, ClientError>::ValueOr;
};

/// Whether a call was done, or why not.
template <>
class [[nodiscard]] ClientResult<void> {
 public:
  ClientResult() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): `return ClientError{…};` reads well
  ClientResult(ClientError error) : is_done_(false), error_(std::move(error)) {}

  bool has_value() const noexcept { return is_done_; }
  explicit operator bool() const noexcept { return has_value(); }
  /// Requires: has_value(); otherwise it stops the process.
  void value() const { DETENT_CHECK(has_value()); }
  /// Empty when it was done.
  const ClientError& error() const noexcept { return error_; }

 private:
  bool is_done_ = true;
  ClientError error_;
};

/// What is asked and answered.
namespace client {

using std::chrono::milliseconds;

/// Kept byte for byte. `json`: one JSON value as text.
struct Payload {
  enum class Kind : std::uint8_t { json, bytes };
  Kind kind = Kind::json;
  std::string data = "null";

  friend bool operator==(const Payload&, const Payload&) = default;
};

/// So long from now, or then. A finer date is rounded by its maker:
/// `std::chrono::ceil<milliseconds>(std::chrono::system_clock::now() + 1h)`.
using Due = std::variant<milliseconds, WallTime>;

/// Names a task by what its maker called it, instead of by the server's id.
struct TaskKey {
  std::string queue;
  std::string key;
};
using TaskName = std::variant<std::uint64_t, TaskKey>;

/// The rest after attempt n is initial * 2^(n - 1), at most max.
struct Backoff {
  milliseconds initial{1'000};
  milliseconds max{3'600'000};

  friend bool operator==(const Backoff&, const Backoff&) = default;
};

/// A request's header, of a webhook or for a worker.
struct Header {
  std::string name;
  std::string value;

  friend bool operator==(const Header&, const Header&) = default;
};

/// A task to be scheduled. With a `key` scheduling may be repeated: the same request again answers
/// the first task. What is not given is as the queue has it.
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

/// `completed` and `cancelled` while a task is kept after its end.
enum class TaskState : std::uint8_t { scheduled, ready, leased, dead, completed, cancelled };

/// A task that is on the server's disk. `was_there`: its key stood for it before.
struct ScheduledTask {
  std::uint64_t id = 0;
  std::string queue = {};
  TaskState state = TaskState::scheduled;
  WallTime due_at{};
  bool was_there = false;
};

/// All there is to know about a task, but for its history.
struct Task {
  std::uint64_t id = 0;
  std::string queue = {};
  TaskState state = TaskState::scheduled;
  WallTime due_at{};
  WallTime created_at{};
  Payload payload = {};
  std::string key = {};
  std::uint32_t priority = 0;
  std::uint32_t attempts = 0;  // that have ended
  std::string last_error = {};
};

/// Some tasks of a list, and where it goes on; "" when it is over.
struct TaskPage {
  std::vector<Task> tasks;
  std::string cursor;
};

/// Which tasks a list has.
struct ListOptions {
  std::optional<std::string> queue = {};
  std::optional<TaskState> state = {};
  std::optional<std::string> key = {};
  std::optional<WallTime> due_after = {};
  std::optional<WallTime> due_before = {};
  std::size_t limit = 100;  // 1 … 1 000
  std::string cursor = {};
};

struct LeaseOptions {
  std::size_t max = 1;   // 1 … 1 000
  milliseconds wait{0};  // for the first task when nothing is due; at most 60 s
  std::optional<milliseconds> visibility_timeout = {};
  std::string worker = {};  // who takes them, for people to see
};

/// A task in the hands of whoever leased it, until `lease_until`.
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
  milliseconds lateness{0};
  std::vector<Header> headers = {};
};

/// What became of a lease.
enum class LeaseStatus : std::uint8_t {
  done,
  conflict,     // it is no longer held
  dead,         // the attempt that failed was the last one
  unavailable,  // not known, and it may still be held: its shard was away for all of `retry_for`
  error,        // the server failed at it
};

struct FailOptions {
  std::string error = {};
  std::optional<milliseconds> delay = {};  // else the task's backoff
};

struct ReleaseOptions {
  std::optional<milliseconds> delay = {};  // else it is ready at once
  std::optional<std::uint32_t> priority = {};
};

/// docs/reference/queues.md says what each does; one without a value has its default.
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
  std::string webhook = {};  // "": none
  std::string sink = {};     // likewise; a queue has at most one of the two
  std::uint32_t partitions = 1;
};

/// What is changed of a queue's settings. Of those with two optionals the inner one without a value
/// is the default.
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
  std::optional<std::string> webhook = {};       // "": none
  std::optional<std::string> sink = {};          // likewise
  std::optional<std::uint32_t> partitions = {};  // of a queue that is not there yet
};

/// A queue's counts by state, and its settings.
struct Queue {
  std::string name = {};
  std::uint64_t scheduled = 0;
  std::uint64_t ready = 0;
  std::uint64_t leased = 0;
  std::uint64_t dead = 0;
  std::optional<milliseconds> oldest_ready_age = {};
  std::uint64_t bytes = 0;  // of the payloads
  QueueSettings settings = {};
};

/// The rules of recurring schedules.
struct CronRule {
  std::string expression;
};
struct IntervalRule {
  milliseconds every{0};
  std::optional<WallTime> anchor = {};  // none: the schedule's start, or now
};
struct CalendarRule {
  enum class Unit : std::uint8_t { day, week, month, year };
  enum class MonthEnd : std::uint8_t { clamp, skip };
  std::uint32_t every = 1;
  Unit unit = Unit::month;
  MonthEnd month_end = MonthEnd::clamp;
  std::optional<WallTime> anchor = {};  // none: the schedule's start, or now
};

/// A recurring schedule to be: its rule, and the task it makes. docs/guides/recurring.md says what
/// happens when.
struct NewSchedule {
  enum class Misfire : std::uint8_t { skip, once, all };
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

struct Schedule {
  std::string name = {};
  std::string state = {};  // active, paused, over, broken
  std::string words = {};  // the rule in plain English
  std::string queue = {};
  std::optional<WallTime> next_at = {};
  std::uint64_t made = 0;  // tasks, for occurrences
};

}  // namespace client

struct ClientOptions {
  std::string token = {};    // an access token, if the server wants one; "": none
  std::string ca_file = {};  // certificates that are trusted for https, in PEM; "": the system's
  /// Until a try is given up; lease() adds its wait. Above 0, at most a day.
  std::chrono::milliseconds timeout{30'000};
  /// For so long a call is repeated; 0: never.
  std::chrono::milliseconds retry_for{15'000};
  Clock* clock = nullptr;  // null: the machine's. Otherwise it must outlive the client
};

/// Thread-safe: a connection is used by one call at a time, and as many are kept as there were
/// calls at once. Every method blocks until it is answered or given up. Errors of all: those of
/// ClientError, as the server means them; unavailable.
class Client {
 public:
  /// `url` is "http://HOST[:PORT]" or "https://…". Does not connect yet.
  /// Errors: invalid_argument for a URL of another form, a ca_file without certificates, a timeout
  /// that is not above 0 and at most a day, or a token with control characters (the line break of
  /// the file it was read from).
  static ClientResult<Client> create(std::string url, ClientOptions options = {});
  ~Client();
  /// One that was moved from may only be destroyed or assigned to.
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;

  /// Once it returns, the task is on the server's disk. Errors: conflict when the key stands for
  /// another content.
  ClientResult<client::ScheduledTask> schedule(const client::NewTask& task);
  /// Up to 10 000 in one commit; a result each, in order: one that is wrong fails alone.
  ClientResult<std::vector<ClientResult<client::ScheduledTask>>> schedule_many(
      std::span<const client::NewTask> tasks);
  ClientResult<client::Task> get(const client::TaskName& task);
  /// A page of the tasks that all of the options want, in due order. It may be short, even empty,
  /// though there is more: go on from its cursor until that is "".
  ClientResult<client::TaskPage> list(const client::ListOptions& options = {});
  /// Errors: not_found; conflict while the task is leased.
  ClientResult<void> cancel(const client::TaskName& task);
  /// Ids, or keys of one queue (else invalid_argument); up to 10 000 in one commit.
  ClientResult<std::vector<ClientResult<void>>> cancel_many(
      std::span<const client::TaskName> tasks);
  /// Gives it another due time; a dead one lives again. Errors: as cancel().
  ClientResult<client::ScheduledTask> move(const client::TaskName& task, const client::Due& due);
  ClientResult<std::vector<ClientResult<client::ScheduledTask>>> move_many(
      std::span<const client::TaskName> tasks, const client::Due& due);
  /// Makes it due now. Errors: as cancel().
  ClientResult<client::ScheduledTask> run_now(std::uint64_t id);

  // Leases; Worker (worker.h) does all of this.

  /// Takes what is due, most urgent first; waits when nothing is.
  ClientResult<std::vector<client::LeasedTask>> lease(const std::string& queue,
                                                      const client::LeaseOptions& options = {});
  /// The work is done. What became of each lease, in order. A repeated call may answer `conflict`
  /// for what its first time has done.
  ClientResult<std::vector<client::LeaseStatus>> complete(std::span<const std::string> leases);
  /// The attempt failed.
  ClientResult<std::vector<client::LeaseStatus>> fail(std::span<const std::string> leases,
                                                      const client::FailOptions& options = {});
  /// They run out `by` from now, or when they did if that is later.
  ClientResult<std::vector<client::LeaseStatus>> extend(std::span<const std::string> leases,
                                                        std::chrono::milliseconds by);
  /// Gives tasks back unharmed: the attempt does not count.
  ClientResult<std::vector<client::LeaseStatus>> release(
      std::span<const std::string> leases, const client::ReleaseOptions& options = {});

  /// All, by name.
  ClientResult<std::vector<client::Queue>> queues();
  ClientResult<client::Queue> queue(const std::string& name);
  /// Changes what is given; the queue is made when it is not there.
  ClientResult<client::Queue> change_queue(const std::string& name,
                                           const client::QueueChange& change);
  /// Errors: conflict while it has tasks.
  ClientResult<void> remove_queue(const std::string& name);
  ClientResult<client::Queue> pause(const std::string& name);
  ClientResult<client::Queue> resume(const std::string& name);
  /// Removes all tasks that are not leased; how many.
  ClientResult<std::uint64_t> purge(const std::string& name);
  /// Makes all dead tasks due now; how many.
  ClientResult<std::uint64_t> redrive(const std::string& name);

  /// Makes or replaces a recurring schedule.
  ClientResult<client::Schedule> put_schedule(const std::string& name,
                                              const client::NewSchedule& schedule);
  ClientResult<client::Schedule> get_schedule(const std::string& name);
  /// All, by name.
  ClientResult<std::vector<client::Schedule>> schedules();
  ClientResult<std::vector<WallTime>> next_occurrences(const std::string& name,
                                                       std::size_t count = 10);
  ClientResult<client::Schedule> pause_schedule(const std::string& name);
  ClientResult<client::Schedule> resume_schedule(const std::string& name);
  /// Makes a task now.
  ClientResult<client::ScheduledTask> trigger_schedule(const std::string& name);
  /// The tasks it has made stay.
  ClientResult<void> remove_schedule(const std::string& name);

  /// Counts, as the server says them: JSON.
  ClientResult<std::string> stats();

 private:
  friend class Worker;
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl) noexcept;

  std::unique_ptr<Impl> impl_;
};

}  // namespace detent
