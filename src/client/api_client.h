// A client of the server's HTTP interface: one method for each verb, with values as input and
// output.
//
// Each call is one request that blocks until it is answered. An error of the server keeps its code,
// its words and the field that it concerns. A transport error is `unavailable`, and it is then
// unknown whether the call took effect.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "client/task_name.h"
#include "net/http_client.h"
#include "protocol/json/answer.h"
#include "protocol/json/dump.h"
#include "protocol/json/queue_patch.h"
#include "protocol/json/request_renderer.h"
#include "protocol/json/schedule_parser.h"
#include "task/forecast.h"
#include "task/recurring_schedule.h"
#include "task/request.h"
#include "task/task_filter.h"
#include "task/task_stats.h"

namespace detent {

struct ApiClientOptions {
  std::string token = {};    // sent with each call, if it is not empty
  std::string ca_file = {};  // as HttpClientOptions::ca_file
};

/// Thread-compatible: one thread at a time.
class ApiClient {
 public:
  using AcceptedTask = json::AcceptedTask;
  using TaskList = json::TaskListAnswer;
  using LeasedTask = json::LeasedTaskAnswer;
  using Failure = json::Failure;
  using Release = json::Release;
  using QueuePatch = json::QueuePatch;
  using Stats = json::ServerStats;

  /// `url` is "http://HOST[:PORT]". Does not connect yet. A call gives up after `timeout`; lease()
  /// after that and the wait it asks the server for.
  /// `url` may also begin with https://.
  /// Errors: `invalid_argument` for a URL of another form.
  static Result<ApiClient> create(std::string_view url,
                                  std::chrono::milliseconds timeout = std::chrono::seconds{30},
                                  const ApiClientOptions& options = {});

  /// Uses two connections with different time-outs: one for calls that are answered immediately,
  /// and one for calls that may take longer.
  ApiClient(std::unique_ptr<net::HttpClient> prompt,
            std::unique_ptr<net::HttpClient> patient) noexcept
      : prompt_(std::move(prompt)), patient_(std::move(patient)) {}

  /// Once it has returned, the task is on the server's disk; `was_there` when that was so before,
  /// because its key stood for it. A payload of kind json is sent as it
  /// stands. Errors: those of validate(), found here; those of the server.
  Result<AcceptedTask> schedule(const ScheduleRequest& request);
  /// A result each, in order; at most kMaxBatchTasks. Fails as a whole when the call does, and for
  /// a json payload that is no JSON, which would break up the batch.
  Result<std::vector<Result<AcceptedTask>>> schedule_batch(
      std::span<const ScheduleRequest> requests);

  /// Errors: not_found.
  Result<TaskSnapshot> get(const TaskName& task);
  /// Tasks that the filter wants, in the order of `GET /v1/tasks`, at most `limit` (1 … 1 000),
  /// from `cursor` on, "" at first. There may be fewer than there could be; the answer's cursor is
  /// "" when the list is over.
  Result<TaskList> list(const TaskFilter& filter, std::size_t limit, std::string_view cursor);
  /// Errors: not_found; conflict when the task is leased.
  Result<void> cancel(const TaskName& task);
  /// Changes the fields that the edit contains; a dead task with another due time is scheduled
  /// again. Errors: as validate(), which runs in this call; not_found; conflict if the task is
  /// leased.
  Result<AcceptedTask> edit(const TaskName& task, const TaskEdit& edit);
  /// Its due time alone.
  Result<AcceptedTask> move(const TaskName& task, const Due& due) {
    return edit(task, {.due = due});
  }
  /// The two for many, at most kMaxBatchTasks, by ids or keys of one queue; a result each, in
  /// order. Requires: no id is left out.
  Result<std::vector<Result<TaskId>>> cancel_batch(const json::TaskNames& tasks);
  Result<std::vector<Result<AcceptedTask>>> move_batch(const json::MoveCall& moves);
  /// Makes a task due now; a dead one lives again. Errors: not_found; conflict when it is leased.
  Result<AcceptedTask> run_now(TaskId id);

  /// Leases ready tasks, most urgent first. If no task is ready, waits up to `wait` (≤
  /// kMaxLeaseWait) for the first task. May return an empty list.
  Result<std::vector<LeasedTask>> lease(const LeaseRequest& request,
                                        std::chrono::milliseconds wait);
  /// Returns the result of each lease, in order.
  Result<std::vector<Result<LeaseOutcome>>> complete(std::span<const std::string> leases);
  Result<std::vector<Result<LeaseOutcome>>> fail(std::span<const std::string> leases,
                                                 const Failure& failure);
  /// The leases run out `by` from now, or when they did if that is later.
  Result<std::vector<Result<LeaseOutcome>>> extend(std::span<const std::string> leases,
                                                   std::chrono::milliseconds by);
  /// Gives tasks back unharmed: the attempt does not count.
  Result<std::vector<Result<LeaseOutcome>>> release(std::span<const std::string> leases,
                                                    const Release& release);

  /// All queues, by name.
  Result<std::vector<QueueView>> queues();
  /// Errors: not_found, as those below but change_queue.
  Result<QueueView> queue(const std::string& name);
  /// Changes settings of a queue, which is made when it is not there. Answers it as it is then.
  Result<QueueView> change_queue(const std::string& name, const QueuePatch& patch);
  /// Errors: conflict while the queue has tasks.
  Result<void> remove_queue(const std::string& name);
  Result<QueueView> pause(const std::string& name);
  Result<QueueView> resume(const std::string& name);
  /// Removes all tasks of a queue that are not leased; answers how many. Takes long for a large
  /// queue: when the time-out ends the wait, the server goes on.
  Result<std::uint64_t> purge(const std::string& name);
  /// As above; makes all its dead tasks due now.
  Result<std::uint64_t> redrive(const std::string& name);

  /// Makes or replaces a recurring schedule; answers it as it is then. Errors: as validate(), found
  /// here; for a rule that can't be read, with the column of a cron expression in the words.
  Result<ScheduleView> put_schedule(const RecurringSchedule& schedule);
  /// Errors: not_found, as those below.
  Result<ScheduleView> find_schedule(const std::string& name);
  /// Returns a page of schedules by name, after `after`; its cursor is the start of the next page.
  Result<json::ScheduleList> schedules(const std::string& after = "");
  /// The next `count` occurrences, 1 … 1 000.
  Result<std::vector<WallTime>> next_occurrences(const std::string& name, std::size_t count);
  /// The tasks it has made stay.
  Result<void> remove_schedule(const std::string& name);
  Result<ScheduleView> pause_schedule(const std::string& name);
  Result<ScheduleView> resume_schedule(const std::string& name);
  /// Makes a task now.
  Result<AcceptedTask> trigger_schedule(const std::string& name);
  /// Makes the tasks of past occurrences, due now. Takes long for many, as purge().
  Result<json::BackfillCounts> backfill(const std::string& name, const json::BackfillRange& range);

  Result<Stats> stats();
  /// How many tasks are due in each part of the time from now on. Errors: as validate_forecast().
  Result<Forecast> forecast(std::chrono::milliseconds span, std::size_t bins);

  /// Part of a dump: the lines of queues (on the first page), tasks and schedules.
  using DumpCursor = json::DumpNext;
  struct DumpPage {
    std::string_view lines;  // in last_answer(); each with its line feed
    json::LineCounts counts;
    std::uint64_t external = 0;      // on the last page: tasks that another system keeps
    std::optional<DumpCursor> next;  // the start of the next page; no value: this was the last page
  };
  /// Returns the page that starts at `from`, or the first page. Errors: `internal` for an
  /// incomplete page.
  Result<DumpPage> dump(const DumpCursor& from);
  /// Restores up to kMaxBatchTasks lines of a dump, each with its line feed.
  Result<json::RestoreAnswer> restore(std::string lines);
  /// Sends any request. A body is sent as JSON, and a body for `/v1/restore` as lines. The answer
  /// is last_answer(). Requires: the target begins with a slash.
  Result<void> ask(std::string method, std::string target, std::string body);
  /// Ok when the server serves requests. Errors: `unavailable` while it starts, stops or is not
  /// there.
  Result<void> ready();

  /// The body of the last answer, as the server sent it; "" if the last call got no answer. For
  /// callers that forward the body without reading it.
  const std::string& last_answer() const noexcept { return last_answer_; }

 private:
  Result<QueueView> call_queue(const net::HttpRequest& request);
  Result<ScheduleView> call_schedule(const net::HttpRequest& request);
  Result<std::uint64_t> call_count(const net::HttpRequest& request);
  Result<std::vector<Result<LeaseOutcome>>> call_leases(const char* verb, std::string body);
  /// Returns: a view of last_answer_.
  Result<std::string_view> call(net::HttpClient& http, const net::HttpRequest& request);

  std::unique_ptr<net::HttpClient> prompt_;
  std::unique_ptr<net::HttpClient> patient_;
  std::string last_answer_;
};

/// The payload for a text that a person typed: the JSON value, if the text is exactly one value
/// (without the surrounding white space), otherwise the bytes of the text.
Payload payload_from_text(std::string_view text);

}  // namespace detent
