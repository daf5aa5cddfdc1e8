// Client: calls a Detent server over HTTP. Requests and results are plain values.
//
//     auto client = detent::Client::create("http://127.0.0.1:7070").value();
//     client.schedule({.queue = "orders", .due = 30 * 24h, .key = "o-1001"}).value();
//     const auto paid = client.cancel(detent::client::TaskKey{"orders", "o-1001"});
//     if (!paid) complain(paid.error().message);
//
// client_types.h has the values. worker.h has Worker, which runs due tasks. The page
// docs/reference/http.md describes each field and the guarantees of the server. The page
// docs/guides/clients.md compares this client with the clients of other languages.
//
// Retries. If the server is away, restarts or answers 503, the client repeats a call for up to
// `retry_for`. It honours the server's Retry-After. The client does not repeat a call whose second
// execution would have an effect of its own:
//
// - schedule and schedule_many, for tasks without a key: the repetition would make two tasks.
// - trigger_schedule: the repetition would make two tasks.
// - purge and redrive: the repetition would also affect tasks that arrived in between.
// - backfill: the repetition would make second tasks in a queue that keeps no keys.
// - call, except with GET: the client does not know the effect.
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
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "detent/client_types.h"
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
  /// Changes the fields of a task that have a value in `edit`. Errors: as cancel();
  /// invalid_argument for a wrong value, or if no field has a value.
  ClientResult<client::ScheduledTask> edit(const client::TaskName& task,
                                           const client::TaskEdit& edit);
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
  /// Returns one page of the recurring schedules, sorted by name. `cursor` is "" for the first
  /// page.
  ClientResult<client::SchedulePage> schedule_page(const std::string& cursor = {});
  /// Returns the next `count` occurrences of a schedule (1 to 1,000). Errors: not_found.
  ClientResult<std::vector<WallTime>> next_occurrences(const std::string& name,
                                                       std::size_t count = 10);
  /// Stops making tasks for occurrences.
  ClientResult<client::Schedule> pause_schedule(const std::string& name);
  /// Makes tasks for occurrences again.
  ClientResult<client::Schedule> resume_schedule(const std::string& name);
  /// Makes one task now, in addition to the occurrences.
  ClientResult<client::ScheduledTask> trigger_schedule(const std::string& name);
  /// Makes the tasks of past occurrences, due now. An occurrence that has a task gets no second
  /// task.
  ClientResult<client::BackfillResult> backfill(const std::string& name,
                                                const client::BackfillRange& range);
  /// Removes a recurring schedule. Tasks that it has already made stay.
  ClientResult<void> remove_schedule(const std::string& name);

  /// Returns the server's statistics as JSON: the answer of GET /v1/stats (docs/reference/http.md).
  ClientResult<std::string> stats();
  /// Succeeds when the server is ready to serve requests. Errors: unavailable while it starts or
  /// stops.
  ClientResult<void> ready();
  /// Makes any request of the HTTP interface, and returns the body of its answer. A `body` is sent
  /// as JSON, or as lines of JSON for /v1/restore. Only a GET is repeated. Waits up to 60 s longer
  /// than `timeout`, because the server may work that long. Requires: `target` begins with a slash.
  ClientResult<std::string> call(const std::string& method, const std::string& target,
                                 std::string body = {});

 private:
  friend class ClientInternals;
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl) noexcept;

  std::unique_ptr<Impl> impl_;
};

}  // namespace detent
