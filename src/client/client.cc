#include "client/client.h"

#include <cstdint>
#include <utility>

#include "protocol/json/answer_parser.h"
#include "protocol/json/json_reader.h"
#include "protocol/json/problem.h"
#include "protocol/json/stats_parser.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

/// A queue's name as one segment of a path (RFC 3986): it may hold a slash.
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

std::string task_path(TaskId id) { return "/v1/tasks/" + to_string(id); }

/// A payload that calls itself JSON but is none would make the whole body something else.
Result<void> check_payload(const Payload& payload) {
  if (payload.kind != Payload::Kind::json) return ok();
  auto value = json::read_json(payload.data);
  if (value) return ok();
  Error error = std::move(value).error();
  error.field = "payload";
  return error;
}

}  // namespace

Result<Client> Client::create(std::string_view url, milliseconds timeout) {
  ASSIGN_OR_RETURN(auto prompt, net::HttpClient::create(url, timeout));
  ASSIGN_OR_RETURN(auto patient, net::HttpClient::create(url, timeout + kMaxLeaseWait));
  return Client(std::move(prompt), std::move(patient));
}

Result<Client::AcceptedTask> Client::schedule(const ScheduleRequest& request) {
  TRY(validate(request));
  TRY(check_payload(request.payload));
  ASSIGN_OR_RETURN(const std::string_view body,
                   call(*prompt_, post_request("/v1/tasks", json::render_schedule(request))));
  return json::parse_accepted(body);
}

Result<std::vector<Result<Client::AcceptedTask>>> Client::schedule_batch(
    std::span<const ScheduleRequest> requests) {
  for (const ScheduleRequest& request : requests) TRY(check_payload(request.payload));
  ASSIGN_OR_RETURN(
      const std::string_view body,
      call(*prompt_, post_request("/v1/tasks/batch", json::render_schedule_batch(requests))));
  return json::parse_schedule_results(body);
}

Result<TaskView> Client::get(TaskId id) {
  ASSIGN_OR_RETURN(const std::string_view body, call(*prompt_, get_request(task_path(id))));
  return json::parse_task(body);
}

Result<void> Client::cancel(TaskId id) {
  net::HttpRequest request = get_request(task_path(id));
  request.method = "DELETE";
  TRY(call(*prompt_, request));
  return ok();
}

Result<std::vector<Client::LeasedTask>> Client::lease(const LeaseRequest& request,
                                                      milliseconds wait) {
  TRY(validate(request));
  const std::string path = "/v1/queues/" + percent_encode(request.queue) + "/lease";
  net::HttpClient& http = wait > milliseconds{0} ? *patient_ : *prompt_;
  ASSIGN_OR_RETURN(const std::string_view body,
                   call(http, post_request(path, json::render_lease({request, wait}))));
  return json::parse_leased_tasks(body);
}

Result<std::vector<Result<LeaseOutcome>>> Client::complete(std::span<const std::string> leases) {
  ASSIGN_OR_RETURN(
      const std::string_view body,
      call(*prompt_, post_request("/v1/leases/complete", json::render_complete(leases))));
  return json::parse_lease_results(body);
}

Result<std::vector<Result<LeaseOutcome>>> Client::fail(std::span<const std::string> leases,
                                                       const Failure& failure) {
  ASSIGN_OR_RETURN(
      const std::string_view body,
      call(*prompt_, post_request("/v1/leases/fail", json::render_fail(leases, failure))));
  return json::parse_lease_results(body);
}

Result<Client::Stats> Client::stats() {
  ASSIGN_OR_RETURN(const std::string_view body, call(*prompt_, get_request("/v1/stats")));
  return json::parse_stats(body);
}

Result<void> Client::ready() {
  TRY(call(*prompt_, get_request("/readyz")));
  return ok();
}

/// The body of a 2xx answer; any other is the error it describes.
Result<std::string_view> Client::call(net::HttpClient& http, const net::HttpRequest& request) {
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
