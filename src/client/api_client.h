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
  std::string ca_file = {};  // see HttpClientOptions::ca_file
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

  /// Does not connect yet. `url` is "http://HOST[:PORT]" or "https://HOST[:PORT]". A call fails if
  /// the server does not answer within `timeout`; lease() adds its own wait.
  /// Errors: `invalid_argument` for a URL of another form.
  static Result<ApiClient> create(std::string_view url,
                                  std::chrono::milliseconds timeout = std::chrono::seconds{30},
                                  const ApiClientOptions& options = {});

  /// Uses two connections with different time-outs: one for calls that are answered immediately,
  /// and one for calls that may take longer.
  ApiClient(std::unique_ptr<net::HttpClient> prompt,
            std::unique_ptr<net::HttpClient> patient) noexcept
      : prompt_(std::move(prompt)), patient_(std::move(patient)) {}

  /// When it returns, the task is on the server's disk. `was_there` is true if the task existed
  /// before, because its key was already in use for the same request. A payload of kind json is
  /// sent unchanged. Errors: those of validate(), which runs before the request is sent; those of
  /// the server.
  Result<AcceptedTask> schedule(const ScheduleRequest& request);
  /// Returns one result for each task, in order. Takes at most kMaxBatchTasks. The whole call fails
  /// if the request fails, or if a json payload is not valid JSON, because such a payload would
  /// break the batch.
  Result<std::vector<Result<AcceptedTask>>> schedule_batch(
      std::span<const ScheduleRequest> requests);

  /// Errors: not_found.
  Result<TaskSnapshot> get(const TaskName& task);
  /// Returns a page of at most `limit` (1 … 1,000) tasks that match the filter, in the order of
  /// `GET /v1/tasks`. `cursor` is "" for the first page. A page may be short before the end of the
  /// list; the cursor of the answer is "" only at the end.
  Result<TaskList> list(const TaskFilter& filter, std::size_t limit, std::string_view cursor);
  /// Errors: not_found; conflict if the task is leased.
  Result<void> cancel(const TaskName& task);
  /// Changes the fields that the edit contains; a dead task with another due time is scheduled
  /// again. Errors: as validate(), which runs in this call; not_found; conflict if the task is
  /// leased.
  Result<AcceptedTask> edit(const TaskName& task, const TaskEdit& edit);
  /// Changes only the due time.
  Result<AcceptedTask> move(const TaskName& task, const Due& due) {
    return edit(task, {.due = due});
  }
  /// cancel() and move() for at most kMaxBatchTasks tasks, named by ids or by keys of one queue.
  /// Return one result for each task, in order. Requires: every id has a value.
  Result<std::vector<Result<TaskId>>> cancel_batch(const json::TaskNames& tasks);
  Result<std::vector<Result<AcceptedTask>>> move_batch(const json::MoveCall& moves);
  /// Makes a task due now. A dead task becomes live again. Errors: not_found; conflict if the task
  /// is leased.
  Result<AcceptedTask> run_now(TaskId id);

  /// Leases ready tasks, most urgent first. If no task is ready, waits up to `wait` (≤
  /// kMaxLeaseWait) for the first task. May return an empty list.
  Result<std::vector<LeasedTask>> lease(const LeaseRequest& request,
                                        std::chrono::milliseconds wait);
  /// Returns the result of each lease, in order.
  Result<std::vector<Result<LeaseOutcome>>> complete(std::span<const std::string> leases);
  Result<std::vector<Result<LeaseOutcome>>> fail(std::span<const std::string> leases,
                                                 const Failure& failure);
  /// Extends leases: each expires `by` from now, or at its old end if that is later.
  Result<std::vector<Result<LeaseOutcome>>> extend(std::span<const std::string> leases,
                                                   std::chrono::milliseconds by);
  /// Gives tasks back. The attempt does not count.
  Result<std::vector<Result<LeaseOutcome>>> release(std::span<const std::string> leases,
                                                    const Release& release);

  /// Returns all queues, sorted by name.
  Result<std::vector<QueueView>> queues();
  /// Errors: not_found, also for the calls below except change_queue().
  Result<QueueView> queue(const std::string& name);
  /// Changes settings of a queue and returns its new state. Creates the queue if it does not exist.
  Result<QueueView> change_queue(const std::string& name, const QueuePatch& patch);
  /// Errors: conflict while the queue has tasks.
  Result<void> remove_queue(const std::string& name);
  Result<QueueView> pause(const std::string& name);
  Result<QueueView> resume(const std::string& name);
  /// Removes all tasks of a queue that are not leased. Returns their number. Takes long for a large
  /// queue: if the call times out, the server continues.
  Result<std::uint64_t> purge(const std::string& name);
  /// Makes all dead tasks of the queue due now. Returns their number. May take long, like purge().
  Result<std::uint64_t> redrive(const std::string& name);

  /// Creates or replaces a recurring schedule and returns its new state. Errors: those of
  /// validate(), which runs before the request is sent; an unreadable rule. For a cron expression,
  /// the message names the column.
  Result<ScheduleView> put_schedule(const RecurringSchedule& schedule);
  /// Errors: not_found, also for the calls below.
  Result<ScheduleView> find_schedule(const std::string& name);
  /// Returns a page of schedules by name, after `after`; its cursor is the start of the next page.
  Result<json::ScheduleList> schedules(const std::string& after = "");
  /// Returns the next `count` (1 … 1,000) occurrences.
  Result<std::vector<WallTime>> next_occurrences(const std::string& name, std::size_t count);
  /// Removes the schedule. The tasks that it has created stay.
  Result<void> remove_schedule(const std::string& name);
  Result<ScheduleView> pause_schedule(const std::string& name);
  Result<ScheduleView> resume_schedule(const std::string& name);
  /// Creates one task immediately.
  Result<AcceptedTask> trigger_schedule(const std::string& name);
  /// Creates the tasks of past occurrences, due now. May take long, like purge().
  Result<json::BackfillCounts> backfill(const std::string& name, const json::BackfillRange& range);

  Result<Stats> stats();
  /// Returns the number of tasks that become due in each of `bins` equal spans from now on. Errors:
  /// those of validate_forecast().
  Result<Forecast> forecast(std::chrono::milliseconds span, std::size_t bins);

  /// A page of a dump: the lines of queues (on the first page), tasks and schedules.
  using DumpCursor = json::DumpNext;
  struct DumpPage {
    std::string_view lines;  // in last_answer(); each with its line feed
    json::LineCounts counts;
    std::uint64_t external = 0;      // last page only: tasks that an external scheduler keeps
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
  /// Succeeds if the server serves requests. Errors: `unavailable` while the server starts, stops
  /// or does not answer.
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
