#include "server/http/http_reply.h"

#include "protocol/json/problem.h"

namespace detent::server {

void HttpMetrics::record(std::string_view route, int status, std::chrono::nanoseconds duration) {
  const MutexLock lock(mutex_);
  durations_[{route, status}].record(duration);
}

std::vector<HttpDurations> HttpMetrics::snapshot() const {
  const MutexLock lock(mutex_);
  std::vector<HttpDurations> all;
  all.reserve(durations_.size());
  for (const auto& [of, histogram] : durations_) {
    all.push_back({std::string(of.first), of.second, histogram.snapshot()});
  }
  return all;
}

void HttpReply::note(net::HttpResponse& response) const {
  metrics_->record(route_, response.status, metrics_->now() - start_);
  if (act_ != nullptr) audit_->note(*act_, response.status);
  share(response);
}

void HttpReply::share(net::HttpResponse& response) const {
  if (!shared_with_.empty()) {
    response.headers.emplace_back("access-control-allow-origin", shared_with_);
    response.headers.emplace_back("access-control-expose-headers", "etag, location, retry-after");
    if (shared_with_ != "*") response.headers.emplace_back("vary", "origin");
  }
}

void HttpReply::send(net::HttpResponse response) const {
  note(response);
  responder_.send(std::move(response));
}

net::ResponseStream HttpReply::stream(net::HttpResponse head) const {
  note(head);
  return responder_.stream(std::move(head));
}

void HttpReply::send_json(int status, std::string body) const {
  send({.status = status, .body = std::move(body)});
}

bool HttpReply::offer_json(int status, std::string body) const {
  net::HttpResponse response{.status = status, .body = std::move(body)};
  note(response);
  return responder_.offer(std::move(response));
}

void HttpReply::send_instead(int status, std::string body) const {
  net::HttpResponse response{.status = status, .body = std::move(body)};
  share(response);
  responder_.send(std::move(response));
}

void HttpReply::send_error(const Error& error) const { send(http_error(error)); }

net::HttpResponse http_error(const Error& error) {
  net::HttpResponse response{.status = json::http_status(error.code),
                             .content_type = std::string(json::kProblemContentType),
                             .body = json::render_problem(error)};
  if (error.code == ErrorCode::unavailable) response.headers.emplace_back("retry-after", "1");
  return response;
}

net::HttpResponse http_problem(int status, std::string_view detail) {
  return {.status = status,
          .content_type = std::string(json::kProblemContentType),
          .body = json::render_http_problem(status, detail)};
}

net::HttpResponse http_try_again(std::string_view detail) {
  return http_error({ErrorCode::unavailable, std::string(detail), ""});
}

}  // namespace detent::server
