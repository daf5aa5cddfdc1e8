#include "client/api_client.h"

#include <cstdint>
#include <utility>
#include <variant>

#include "base/wall_time.h"
#include "protocol/json/answer_parser.h"
#include "protocol/json/dump_parser.h"
#include "protocol/json/json_reader.h"
#include "protocol/json/problem.h"
#include "protocol/json/queue_parser.h"
#include "protocol/json/queue_renderer.h"
#include "protocol/json/schedule_renderer.h"
#include "protocol/json/stats_parser.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

/// Encodes a queue name or a key as one segment of a path (RFC 3986). The name may contain slashes.
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

net::HttpRequest get_request(std::string target) {
  return {.method = "GET", .target = std::move(target), .headers = {}, .body = {}};
}

net::HttpRequest post_request(std::string target, std::string body) {
  return {.method = "POST",
          .target = std::move(target),
          .headers = {{"content-type", "application/json"}},
          .body = std::move(body)};
}

net::HttpRequest patch_request(std::string target, std::string body) {
  net::HttpRequest request = post_request(std::move(target), std::move(body));
  request.method = "PATCH";
  return request;
}

net::HttpRequest put_request(std::string target, std::string body) {
  net::HttpRequest request = post_request(std::move(target), std::move(body));
  request.method = "PUT";
  return request;
}

net::HttpRequest delete_request(std::string target) {
  net::HttpRequest request = get_request(std::move(target));
  request.method = "DELETE";
  return request;
}

std::string queue_path(const std::string& name, const char* rest = "") {
  return "/v1/queues/" + percent_encode(name) + rest;
}

std::string schedule_path(const std::string& name, const char* rest = "") {
  return "/v1/schedules/" + percent_encode(name) + rest;
}

std::string task_path(const TaskName& task) {
  if (const TaskId* id = std::get_if<TaskId>(&task)) return "/v1/tasks/" + to_string(*id);
  const auto& [queue, key] = std::get<TaskKey>(task);
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

constexpr const char* kOtherCounts = "the lines of the page do not match its counts";

Error bad_page(const std::string& why) {
  return {ErrorCode::internal, "read the server's dump: " + why, ""};
}

/// Splits a page into its last line and the other lines, and counts the other lines. Each line must
/// be complete.
Result<ApiClient::DumpPage> read_dump_page(std::string_view body,
                                           const ApiClient::DumpCursor& from) {
  if (!body.ends_with('\n')) return bad_page("the page is truncated");
  const std::size_t last = body.substr(0, body.size() - 1).rfind('\n') + 1;
  ApiClient::DumpPage page{.lines = body.substr(0, last)};
  for (std::string_view rest = page.lines; !rest.empty();) {
    const std::size_t size = rest.find('\n') + 1;
    const auto kind = json::kind_of_dump_line(rest.substr(0, size));
    if (!kind) return bad_page(kind.error().message);
    json::count_line(page.counts, *kind);
    rest.remove_prefix(size);
  }
  Result<json::DumpLine> end = json::parse_dump_line(body.substr(last));
  if (!end) return bad_page(end.error().message);
  if (auto* next = std::get_if<json::DumpNext>(&*end)) {
    const json::LineCounts counts = std::exchange(next->counts, {});
    if (counts != page.counts) return bad_page(kOtherCounts);
    if (next->after <= from.after && next->schedule <= from.schedule) {
      return bad_page("the next page does not begin after this page");
    }
    page.next = std::move(*next);
    return page;
  }
  const auto* whole = std::get_if<json::DumpEnd>(&*end);
  if (whole == nullptr || whole->counts != page.counts) {
    return bad_page(kOtherCounts);
  }
  page.external = whole->external;
  return page;
}

}  // namespace

Result<ApiClient> ApiClient::create(std::string_view url, milliseconds timeout,
                                    const ApiClientOptions& options) {
  net::HttpClientOptions http{.headers = {}, .ca_file = options.ca_file};
  if (!options.token.empty()) http.headers.emplace_back("authorization", "Bearer " + options.token);
  ASSIGN_OR_RETURN(auto prompt, net::HttpClient::create(url, timeout, http));
  ASSIGN_OR_RETURN(auto patient, net::HttpClient::create(url, timeout + kMaxLeaseWait, http));
  return ApiClient(std::move(prompt), std::move(patient));
}

Result<ApiClient::AcceptedTask> ApiClient::schedule(const ScheduleRequest& request) {
  TRY(validate(request));
  TRY(check_payload(request.payload));
  ASSIGN_OR_RETURN(const std::string_view body,
                   call(*prompt_, post_request("/v1/tasks", json::render_schedule(request))));
  return json::parse_accepted(body);
}

Result<std::vector<Result<ApiClient::AcceptedTask>>> ApiClient::schedule_batch(
    std::span<const ScheduleRequest> requests) {
  for (const ScheduleRequest& request : requests) TRY(check_payload(request.payload));
  ASSIGN_OR_RETURN(
      const std::string_view body,
      call(*prompt_, post_request("/v1/tasks/batch", json::render_schedule_batch(requests))));
  return json::parse_schedule_results(body);
}

Result<TaskSnapshot> ApiClient::get(const TaskName& task) {
  ASSIGN_OR_RETURN(const std::string_view body, call(*prompt_, get_request(task_path(task))));
  return json::parse_task(body);
}

Result<ApiClient::TaskList> ApiClient::list(const TaskFilter& filter, std::size_t limit,
                                            std::string_view cursor) {
  std::string target = "/v1/tasks?limit=" + std::to_string(limit);
  const auto add = [&target](std::string_view name, std::string_view value) {
    target.append("&").append(name).append("=").append(percent_encode(value));
  };
  if (filter.queue) add("queue", *filter.queue);
  if (filter.state) add("state", to_string(*filter.state));
  if (filter.key) add("key", *filter.key);
  if (filter.due_after) add("due_after", format_rfc3339(*filter.due_after));
  if (filter.due_before) add("due_before", format_rfc3339(*filter.due_before));
  if (!cursor.empty()) add("cursor", cursor);
  ASSIGN_OR_RETURN(const std::string_view body, call(*prompt_, get_request(std::move(target))));
  return json::parse_task_list(body);
}

Result<void> ApiClient::cancel(const TaskName& task) {
  TRY(call(*prompt_, delete_request(task_path(task))));
  return ok();
}

Result<ApiClient::AcceptedTask> ApiClient::edit(const TaskName& task, const TaskEdit& edit) {
  TRY(validate(edit));
  if (edit.payload) TRY(check_payload(*edit.payload));
  ASSIGN_OR_RETURN(const std::string_view body,
                   call(*prompt_, patch_request(task_path(task), json::render_edit(edit))));
  return json::parse_accepted(body);
}

Result<std::vector<Result<TaskId>>> ApiClient::cancel_batch(const json::TaskNames& tasks) {
  ASSIGN_OR_RETURN(
      const std::string_view body,
      call(*prompt_, post_request("/v1/tasks/cancel", json::render_cancel_batch(tasks))));
  return json::parse_cancel_results(body);
}

Result<std::vector<Result<ApiClient::AcceptedTask>>> ApiClient::move_batch(
    const json::MoveCall& moves) {
  TRY(validate(moves.due));
  ASSIGN_OR_RETURN(const std::string_view body,
                   call(*prompt_, post_request("/v1/tasks/move", json::render_move_batch(moves))));
  return json::parse_schedule_results(body);
}

Result<ApiClient::AcceptedTask> ApiClient::run_now(TaskId id) {
  ASSIGN_OR_RETURN(const std::string_view body,
                   call(*prompt_, post_request(task_path(id) + "/run", "")));
  return json::parse_accepted(body);
}

Result<std::vector<ApiClient::LeasedTask>> ApiClient::lease(const LeaseRequest& request,
                                                            milliseconds wait) {
  TRY(validate(request));
  const std::string path = queue_path(request.queue, "/lease");
  net::HttpClient& http = wait > milliseconds{0} ? *patient_ : *prompt_;
  ASSIGN_OR_RETURN(const std::string_view body,
                   call(http, post_request(path, json::render_lease({request, wait}))));
  return json::parse_leased_tasks(body);
}

Result<std::vector<Result<LeaseOutcome>>> ApiClient::complete(std::span<const std::string> leases) {
  return call_leases("complete", json::render_complete(leases));
}

Result<std::vector<Result<LeaseOutcome>>> ApiClient::fail(std::span<const std::string> leases,
                                                          const Failure& failure) {
  return call_leases("fail", json::render_fail(leases, failure));
}

Result<std::vector<Result<LeaseOutcome>>> ApiClient::extend(std::span<const std::string> leases,
                                                            milliseconds by) {
  return call_leases("extend", json::render_extend(leases, by));
}

Result<std::vector<Result<LeaseOutcome>>> ApiClient::release(std::span<const std::string> leases,
                                                             const Release& release) {
  return call_leases("release", json::render_release(leases, release));
}

Result<std::vector<QueueView>> ApiClient::queues() {
  ASSIGN_OR_RETURN(const std::string_view body, call(*prompt_, get_request("/v1/queues")));
  return json::parse_queues(body);
}

Result<QueueView> ApiClient::queue(const std::string& name) {
  return call_queue(get_request(queue_path(name)));
}

Result<QueueView> ApiClient::change_queue(const std::string& name, const QueuePatch& patch) {
  return call_queue(patch_request(queue_path(name), json::render_queue_patch(patch)));
}

Result<void> ApiClient::remove_queue(const std::string& name) {
  TRY(call(*prompt_, delete_request(queue_path(name))));
  return ok();
}

Result<QueueView> ApiClient::pause(const std::string& name) {
  return call_queue(post_request(queue_path(name, "/pause"), ""));
}

Result<QueueView> ApiClient::resume(const std::string& name) {
  return call_queue(post_request(queue_path(name, "/resume"), ""));
}

Result<std::uint64_t> ApiClient::purge(const std::string& name) {
  return call_count(post_request(queue_path(name, "/purge"), ""));
}

Result<std::uint64_t> ApiClient::redrive(const std::string& name) {
  return call_count(post_request(queue_path(name, "/redrive"), ""));
}

Result<ScheduleView> ApiClient::put_schedule(const RecurringSchedule& schedule) {
  TRY(validate(schedule));
  TRY(check_payload(schedule.payload));
  return call_schedule(
      put_request(schedule_path(schedule.name), json::render_schedule_rule(schedule)));
}

Result<ScheduleView> ApiClient::find_schedule(const std::string& name) {
  return call_schedule(get_request(schedule_path(name)));
}

Result<json::ScheduleList> ApiClient::schedules(const std::string& after) {
  const std::string from = after.empty() ? "" : "?cursor=" + percent_encode(after);
  ASSIGN_OR_RETURN(const std::string_view body,
                   call(*prompt_, get_request("/v1/schedules" + from)));
  return json::parse_schedule_list(body);
}

Result<std::vector<WallTime>> ApiClient::next_occurrences(const std::string& name,
                                                          std::size_t count) {
  ASSIGN_OR_RETURN(
      const std::string_view body,
      call(*prompt_, get_request(schedule_path(name, "/next?count=") + std::to_string(count))));
  return json::parse_next_occurrences(body);
}

Result<void> ApiClient::remove_schedule(const std::string& name) {
  TRY(call(*prompt_, delete_request(schedule_path(name))));
  return ok();
}

Result<ScheduleView> ApiClient::pause_schedule(const std::string& name) {
  return call_schedule(post_request(schedule_path(name, "/pause"), ""));
}

Result<ScheduleView> ApiClient::resume_schedule(const std::string& name) {
  return call_schedule(post_request(schedule_path(name, "/resume"), ""));
}

Result<ApiClient::AcceptedTask> ApiClient::trigger_schedule(const std::string& name) {
  ASSIGN_OR_RETURN(const std::string_view body,
                   call(*prompt_, post_request(schedule_path(name, "/trigger"), "")));
  return json::parse_accepted(body);
}

Result<json::BackfillCounts> ApiClient::backfill(const std::string& name,
                                                 const json::BackfillRange& range) {
  ASSIGN_OR_RETURN(const std::string_view body,
                   call(*patient_, post_request(schedule_path(name, "/backfill"),
                                                json::render_backfill(range))));
  return json::parse_backfill_counts(body);
}

Result<ApiClient::Stats> ApiClient::stats() {
  ASSIGN_OR_RETURN(const std::string_view body, call(*prompt_, get_request("/v1/stats")));
  return json::parse_stats(body);
}

Result<Forecast> ApiClient::forecast(milliseconds span, std::size_t bins) {
  TRY(validate_forecast(span, bins));
  ASSIGN_OR_RETURN(const std::string_view body,
                   call(*prompt_, get_request("/v1/forecast?bins=" + std::to_string(bins) +
                                              "&span=" + std::to_string(span.count()) + "ms")));
  return json::parse_forecast(body);
}

Result<ApiClient::DumpPage> ApiClient::dump(const DumpCursor& from) {
  std::string query;
  if (from.after != TaskId{}) query += "?after=" + to_string(from.after);
  if (!from.schedule.empty()) {
    query += (query.empty() ? "?" : "&");
    query += "after_schedule=" + percent_encode(from.schedule);
  }
  ASSIGN_OR_RETURN(const std::string_view body, call(*prompt_, get_request("/v1/dump" + query)));
  return read_dump_page(body, from);
}

Result<json::RestoreAnswer> ApiClient::restore(std::string lines) {
  net::HttpRequest request = post_request("/v1/restore", std::move(lines));
  request.headers = {{"content-type", std::string(json::kDumpContentType)}};
  ASSIGN_OR_RETURN(const std::string_view body, call(*prompt_, request));
  return json::parse_restored(body);
}

Result<void> ApiClient::ask(std::string method, std::string target, std::string body) {
  net::HttpRequest request = get_request(std::move(target));
  if (!body.empty()) {
    const bool is_dump = request.target.starts_with("/v1/restore");
    request = post_request(std::move(request.target), std::move(body));
    if (is_dump) request.headers = {{"content-type", std::string(json::kDumpContentType)}};
  }
  request.method = std::move(method);
  TRY(call(*patient_, request));
  return ok();
}

Result<void> ApiClient::ready() {
  TRY(call(*prompt_, get_request("/readyz")));
  return ok();
}

Result<QueueView> ApiClient::call_queue(const net::HttpRequest& request) {
  ASSIGN_OR_RETURN(const std::string_view body, call(*prompt_, request));
  return json::parse_queue(body);
}

Result<ScheduleView> ApiClient::call_schedule(const net::HttpRequest& request) {
  ASSIGN_OR_RETURN(const std::string_view body, call(*prompt_, request));
  return json::parse_schedule_view(body);
}

Result<std::uint64_t> ApiClient::call_count(const net::HttpRequest& request) {
  ASSIGN_OR_RETURN(const std::string_view body, call(*patient_, request));
  return json::parse_count(body);
}

Result<std::vector<Result<LeaseOutcome>>> ApiClient::call_leases(const char* verb,
                                                                 std::string body) {
  ASSIGN_OR_RETURN(
      const std::string_view answer,
      call(*prompt_, post_request(std::string("/v1/leases/") + verb, std::move(body))));
  return json::parse_lease_results(answer);
}

/// Returns the body of a 2xx answer. Any other answer becomes the error that it describes.
Result<std::string_view> ApiClient::call(net::HttpClient& http, const net::HttpRequest& request) {
  last_answer_.clear();
  ASSIGN_OR_RETURN(net::HttpResponse response, http.send(request));
  last_answer_ = std::move(response.body);
  if (response.status / 100 != 2) return json::parse_problem(response.status, last_answer_);
  return std::string_view(last_answer_);
}

Payload payload_from_text(std::string_view text) {
  if (const auto value = json::read_json(text)) {
    return {Payload::Kind::json, std::string(*value)};
  }
  return {Payload::Kind::bytes, std::string(text)};
}

}  // namespace detent
