#include "detent/client.h"

#include <algorithm>
#include <iterator>

#include "base/wall_time.h"
#include "client/client_impl.h"
#include "protocol/json/dump_codec.h"
#include "protocol/json/json_reader.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/request_codec.h"
#include "protocol/json/schedule_codec.h"
#include "protocol/json/stats_codec.h"

namespace detent {
namespace {

using std::chrono::milliseconds;
using Repeat = ServerCall::Repeat;
using Patience = ServerCall::Patience;

ServerCall with_method(const char* method, ServerCall call) {
  call.request.method = method;
  return call;
}

ServerCall delete_call(std::string target) {
  return with_method("DELETE", get_call(std::move(target)));
}

ServerCall once(ServerCall call) {
  call.repeat = Repeat::never;
  return call;
}

ServerCall patient(ServerCall call) {
  call.patience = Patience::patient;
  return call;
}

std::string queue_path(const std::string& name, const char* rest = "") {
  return "/v1/queues/" + percent_encode(name) + rest;
}

std::string schedule_path(const std::string& name, const char* rest = "") {
  return "/v1/schedules/" + percent_encode(name) + rest;
}

std::string task_path(const client::TaskName& task) {
  if (const auto* id = std::get_if<std::uint64_t>(&task)) return "/v1/tasks/" + std::to_string(*id);
  const auto& [queue, key] = std::get<client::TaskKey>(task);
  return queue_path(queue, "/keys/") + percent_encode(key);
}

/// Refuses a JSON payload that is not valid JSON, because it would change the rest of the body.
Result<void> check_payload(const Payload& payload) {
  if (payload.kind != Payload::Kind::json) return ok();
  auto value = json::read_json(payload.data);
  if (value) return ok();
  Error error = std::move(value).error();
  error.field = "payload";
  return error;
}

Result<ServerCall> schedule_call(const client::NewTask& task) {
  const ScheduleRequest request = from_client(task);
  TRY(validate(request));
  TRY(check_payload(request.payload));
  ServerCall call = post_call("/v1/tasks", json::render_schedule(request));
  return task.key.empty() ? once(std::move(call)) : call;
}

Result<ServerCall> schedule_many_call(std::span<const client::NewTask> tasks) {
  std::vector<ScheduleRequest> requests;
  for (const client::NewTask& task : tasks) {
    requests.push_back(from_client(task));
    TRY(check_payload(requests.back().payload));
  }
  ServerCall call = post_call("/v1/tasks/batch", json::render_schedule_batch(requests));
  const bool all_have_keys =
      std::ranges::none_of(tasks, [](const client::NewTask& task) { return task.key.empty(); });
  return all_have_keys ? call : once(std::move(call));
}

Result<ServerCall> edit_call(const client::TaskName& task, const client::TaskEdit& change) {
  const TaskEdit edit = from_client(change);
  TRY(validate(edit));
  if (edit.payload) TRY(check_payload(*edit.payload));
  return with_method("PATCH", post_call(task_path(task), json::render_edit(edit)));
}

Result<ServerCall> cancel_many_call(std::span<const client::TaskName> tasks) {
  ASSIGN_OR_RETURN(const json::TaskNames names, from_client(tasks));
  return post_call("/v1/tasks/cancel", json::render_cancel_batch(names));
}

Result<ServerCall> move_many_call(std::span<const client::TaskName> tasks, const client::Due& due) {
  ASSIGN_OR_RETURN(json::TaskNames names, from_client(tasks));
  TRY(validate(due));
  const json::MoveCall moves{.tasks = std::move(names), .due = due};
  return post_call("/v1/tasks/move", json::render_move_batch(moves));
}

ServerCall list_call(const client::ListOptions& options) {
  std::string target = "/v1/tasks?limit=" + std::to_string(options.limit);
  const auto add = [&target](std::string_view name, std::string_view value) {
    target.append("&").append(name).append("=").append(percent_encode(value));
  };
  if (options.queue) add("queue", *options.queue);
  if (options.state) add("state", to_string(*options.state));
  if (options.key) add("key", *options.key);
  if (options.due_after) add("due_after", format_rfc3339(*options.due_after));
  if (options.due_before) add("due_before", format_rfc3339(*options.due_before));
  if (!options.cursor.empty()) add("cursor", options.cursor);
  return get_call(std::move(target));
}

Result<ServerCall> put_schedule_call(const std::string& name, const client::NewSchedule& wanted) {
  const RecurringSchedule schedule = from_client(name, wanted);
  TRY(validate(schedule));
  TRY(check_payload(schedule.payload));
  return with_method("PUT", post_call(schedule_path(name), json::render_schedule_rule(schedule)));
}

client::LeaseStatus status_of(const ClientResult<client::LeaseStatus>& result) {
  if (result) return *result;
  const bool is_away = result.error().code == ClientError::Code::unavailable;
  return is_away ? client::LeaseStatus::unavailable : client::LeaseStatus::error;
}

ClientResult<std::vector<client::LeaseStatus>> statuses(
    const ClientResult<Results<client::LeaseStatus>>& results) {
  if (!results) return results.error();
  std::vector<client::LeaseStatus> all;
  for (const auto& result : *results) all.push_back(status_of(result));
  return all;
}

/// Returns the JSON text unchanged if it is an answer of `GET /v1/stats`.
Result<std::string> checked_stats(std::string_view body) {
  TRY(json::parse_stats(body));
  return std::string(body);
}

Result<std::string> any_body(std::string_view body) { return std::string(body); }

}  // namespace

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<std::uint8_t>(c);
    out.push_back('%');
    out.push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  }
  return out;
}

ServerCall get_call(std::string target) {
  return {.request = {.method = "GET", .target = std::move(target), .headers = {}, .body = {}}};
}

ServerCall post_call(std::string target, std::string body) {
  return {.request = {.method = "POST",
                      .target = std::move(target),
                      .headers = {{"content-type", "application/json"}},
                      .body = std::move(body)}};
}

Result<ServerCall> lease_call(const std::string& queue, const client::LeaseOptions& options) {
  const LeaseRequest request{.queue = queue,
                             .max = options.max,
                             .visibility_timeout = options.visibility_timeout,
                             .worker = options.worker};
  TRY(validate(request));
  ServerCall call =
      post_call(queue_path(queue, "/lease"), json::render_lease({request, options.wait}));
  return options.wait > milliseconds{0} ? patient(std::move(call)) : call;
}

ServerCall complete_call(Leases leases) {
  return post_call("/v1/leases/complete", json::render_complete(leases));
}

ServerCall fail_call(Leases leases, const client::FailOptions& options) {
  return post_call("/v1/leases/fail",
                   json::render_fail(leases, {options.delay, options.error, options.final}));
}

ServerCall extend_call(Leases leases, milliseconds by) {
  return post_call("/v1/leases/extend", json::render_extend(leases, by));
}

ServerCall release_call(Leases leases, const client::ReleaseOptions& options) {
  return post_call("/v1/leases/release",
                   json::render_release(leases, {options.delay, options.priority}));
}

Client::Client(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Client::~Client() = default;
Client::Client(Client&& other) noexcept = default;
Client& Client::operator=(Client&& other) noexcept = default;

ClientResult<Client> Client::create(std::string url, ClientOptions options) {
  auto impl = std::make_unique<Impl>(std::move(url), std::move(options));
  auto first = impl->take();  // checks the URL and reads the certificates
  if (!first) return to_client(first.error());
  impl->give_back(*std::move(first));
  return Client(std::move(impl));
}

// ---- tasks --------------------------------------------------------------------------------------

ClientResult<client::ScheduledTask> Client::schedule(const client::NewTask& task) {
  return impl_->call(schedule_call(task), json::parse_accepted);
}

ClientResult<std::vector<ClientResult<client::ScheduledTask>>> Client::schedule_many(
    std::span<const client::NewTask> tasks) {
  return impl_->call_each(tasks, schedule_many_call, json::parse_schedule_results);
}

ClientResult<client::Task> Client::get(const client::TaskName& task) {
  return impl_->call(get_call(task_path(task)), json::parse_task);
}

ClientResult<client::TaskPage> Client::list(const client::ListOptions& options) {
  return impl_->call(list_call(options), json::parse_task_list);
}

ClientResult<void> Client::cancel(const client::TaskName& task) {
  return impl_->call(delete_call(task_path(task)));
}

ClientResult<std::vector<ClientResult<void>>> Client::cancel_many(
    std::span<const client::TaskName> tasks) {
  return impl_->call_each(tasks, cancel_many_call, json::parse_cancel_results);
}

ClientResult<client::ScheduledTask> Client::move(const client::TaskName& task,
                                                 const client::Due& due) {
  return edit(task, {.due = due});
}

ClientResult<std::vector<ClientResult<client::ScheduledTask>>> Client::move_many(
    std::span<const client::TaskName> tasks, const client::Due& due) {
  const auto make = [&due](std::span<const client::TaskName> some) {
    return move_many_call(some, due);
  };
  return impl_->call_each(tasks, make, json::parse_schedule_results);
}

ClientResult<client::ScheduledTask> Client::edit(const client::TaskName& task,
                                                 const client::TaskEdit& edit) {
  return impl_->call(edit_call(task, edit), json::parse_accepted);
}

ClientResult<client::ScheduledTask> Client::run_now(std::uint64_t id) {
  return impl_->call(post_call(task_path(id) + "/run"), json::parse_accepted);
}

// ---- leases -------------------------------------------------------------------------------------

ClientResult<std::vector<client::LeasedTask>> Client::lease(const std::string& queue,
                                                            const client::LeaseOptions& options) {
  return impl_->call(lease_call(queue, options), json::parse_leased_tasks);
}

ClientResult<std::vector<client::LeaseStatus>> Client::complete(Leases leases) {
  return statuses(impl_->call_leases(leases, complete_call));
}

ClientResult<std::vector<client::LeaseStatus>> Client::fail(Leases leases,
                                                            const client::FailOptions& options) {
  return statuses(
      impl_->call_leases(leases, [&](Leases some) { return fail_call(some, options); }));
}

ClientResult<std::vector<client::LeaseStatus>> Client::extend(Leases leases, milliseconds by) {
  return statuses(impl_->call_leases(leases, [by](Leases some) { return extend_call(some, by); }));
}

ClientResult<std::vector<client::LeaseStatus>> Client::release(
    Leases leases, const client::ReleaseOptions& options) {
  return statuses(
      impl_->call_leases(leases, [&](Leases some) { return release_call(some, options); }));
}

// ---- queues -------------------------------------------------------------------------------------

ClientResult<std::vector<client::Queue>> Client::queues() {
  return impl_->call(get_call("/v1/queues"), json::parse_queues);
}

ClientResult<client::Queue> Client::queue(const std::string& name) {
  return impl_->call(get_call(queue_path(name)), json::parse_queue);
}

ClientResult<client::Queue> Client::change_queue(const std::string& name,
                                                 const client::QueueChange& change) {
  const std::string body = json::render_queue_patch(from_client(change));
  return impl_->call(with_method("PATCH", post_call(queue_path(name), body)), json::parse_queue);
}

ClientResult<void> Client::remove_queue(const std::string& name) {
  return impl_->call(delete_call(queue_path(name)));
}

ClientResult<client::Queue> Client::pause(const std::string& name) {
  return impl_->call(post_call(queue_path(name, "/pause")), json::parse_queue);
}

ClientResult<client::Queue> Client::resume(const std::string& name) {
  return impl_->call(post_call(queue_path(name, "/resume")), json::parse_queue);
}

ClientResult<std::uint64_t> Client::purge(const std::string& name) {
  return impl_->call(once(patient(post_call(queue_path(name, "/purge")))), json::parse_count);
}

ClientResult<std::uint64_t> Client::redrive(const std::string& name) {
  return impl_->call(once(patient(post_call(queue_path(name, "/redrive")))), json::parse_count);
}

// ---- recurring schedules ------------------------------------------------------------------------

ClientResult<client::Schedule> Client::put_schedule(const std::string& name,
                                                    const client::NewSchedule& schedule) {
  return impl_->call(put_schedule_call(name, schedule), json::parse_schedule_view);
}

ClientResult<client::Schedule> Client::get_schedule(const std::string& name) {
  return impl_->call(get_call(schedule_path(name)), json::parse_schedule_view);
}

ClientResult<std::vector<client::Schedule>> Client::schedules() {
  std::vector<client::Schedule> all;
  for (std::string cursor; true;) {
    auto page = schedule_page(cursor);
    if (!page) return page.error();
    std::ranges::move(page->schedules, std::back_inserter(all));
    if (page->cursor.empty()) return all;
    cursor = std::move(page->cursor);
  }
}

ClientResult<client::SchedulePage> Client::schedule_page(const std::string& cursor) {
  const std::string from = cursor.empty() ? "" : "?cursor=" + percent_encode(cursor);
  return impl_->call(get_call("/v1/schedules" + from), json::parse_schedule_list);
}

ClientResult<std::vector<WallTime>> Client::next_occurrences(const std::string& name,
                                                             std::size_t count) {
  return impl_->call(get_call(schedule_path(name, "/next?count=") + std::to_string(count)),
                     json::parse_next_occurrences);
}

ClientResult<client::Schedule> Client::pause_schedule(const std::string& name) {
  return impl_->call(post_call(schedule_path(name, "/pause")), json::parse_schedule_view);
}

ClientResult<client::Schedule> Client::resume_schedule(const std::string& name) {
  return impl_->call(post_call(schedule_path(name, "/resume")), json::parse_schedule_view);
}

ClientResult<client::ScheduledTask> Client::trigger_schedule(const std::string& name) {
  return impl_->call(once(post_call(schedule_path(name, "/trigger"))), json::parse_accepted);
}

ClientResult<client::BackfillResult> Client::backfill(const std::string& name,
                                                      const client::BackfillRange& range) {
  const std::string body = json::render_backfill({range.from, range.to, range.limit});
  return impl_->call(once(patient(post_call(schedule_path(name, "/backfill"), body))),
                     json::parse_backfill_counts);
}

ClientResult<void> Client::remove_schedule(const std::string& name) {
  return impl_->call(delete_call(schedule_path(name)));
}

// ---- the server ---------------------------------------------------------------------------------

ClientResult<std::string> Client::stats() {
  return impl_->call(get_call("/v1/stats"), checked_stats);
}

ClientResult<void> Client::ready() { return impl_->call(get_call("/readyz")); }

ClientResult<std::string> Client::call(const std::string& method, const std::string& target,
                                       std::string body) {
  const bool is_dump = target.starts_with("/v1/restore");
  ServerCall call = body.empty() ? get_call(target) : post_call(target, std::move(body));
  if (is_dump && !call.request.headers.empty()) {
    call.request.headers.front().second = json::kDumpContentType;
  }
  call = with_method(method.c_str(), patient(std::move(call)));
  return impl_->call(method == "GET" ? call : once(call), any_body);
}

}  // namespace detent
