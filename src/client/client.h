// A client of the server's HTTP interface: one method a verb, values in and out.
//
// Each call is one request that blocks until it is answered. Errors are the server's own, with its
// code, its words and the field it complains about; what went wrong on the way is `unavailable`,
// and then a call that changes something may have been carried out or not.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/http_client.h"
#include "protocol/json/answer.h"
#include "protocol/json/request_renderer.h"
#include "task/request.h"

namespace detent {

/// Thread-compatible: one thread at a time.
class Client {
 public:
  using AcceptedTask = json::AcceptedTask;
  using LeasedTask = json::LeasedTaskAnswer;
  using Failure = json::Failure;
  using Stats = json::ServerStats;

  /// `url` is "http://HOST[:PORT]". Does not connect yet. A call gives up after `timeout`; lease()
  /// after that and the wait it asks the server for.
  /// Errors: `invalid_argument` for a URL of another form.
  static Result<Client> create(std::string_view url,
                               std::chrono::milliseconds timeout = std::chrono::seconds{30});

  /// Two connections, so that a time-out fits what it waits for: one for calls that are answered at
  /// once, one for those that may wait for a task.
  Client(std::unique_ptr<net::HttpClient> prompt, std::unique_ptr<net::HttpClient> patient) noexcept
      : prompt_(std::move(prompt)), patient_(std::move(patient)) {}

  /// Once it has returned, the task is on the server's disk. A payload of kind json is sent as it
  /// stands. Errors: those of validate(), found here; those of the server.
  Result<AcceptedTask> schedule(const ScheduleRequest& request);
  /// A result each, in order; at most kMaxBatchTasks. Fails as a whole when the call does, and for
  /// a json payload that is no JSON, which would break up the batch.
  Result<std::vector<Result<AcceptedTask>>> schedule_batch(
      std::span<const ScheduleRequest> requests);

  /// Errors: not_found.
  Result<TaskView> get(TaskId id);
  /// Errors: not_found; conflict when the task is leased.
  Result<void> cancel(TaskId id);

  /// Takes what is ready, most urgent first; waits up to `wait` (≤ kMaxLeaseWait) for the first
  /// task when nothing is. May return none.
  Result<std::vector<LeasedTask>> lease(const LeaseRequest& request,
                                        std::chrono::milliseconds wait);
  /// What became of each lease, in order.
  Result<std::vector<Result<LeaseOutcome>>> complete(std::span<const std::string> leases);
  Result<std::vector<Result<LeaseOutcome>>> fail(std::span<const std::string> leases,
                                                 const Failure& failure);

  Result<Stats> stats();
  /// Ok when the server serves requests. Errors: `unavailable` while it starts, stops or is not
  /// there.
  Result<void> ready();

  /// The body of the last answer, as the server sent it; "" when the last call got none. For those
  /// who pass it on instead of reading it.
  const std::string& last_answer() const noexcept { return last_answer_; }

 private:
  /// Returns: a view of last_answer_.
  Result<std::string_view> call(net::HttpClient& http, const net::HttpRequest& request);

  std::unique_ptr<net::HttpClient> prompt_;
  std::unique_ptr<net::HttpClient> patient_;
  std::string last_answer_;
};

/// What a person typed as a payload: the JSON value when it is exactly one (without the white space
/// around it), else the bytes as they are.
Payload payload_from_text(std::string_view text);

}  // namespace detent
