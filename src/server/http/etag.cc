#include "server/http/etag.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/fnv.h"
#include "server/http/http_reply.h"
#include "store/record_format.h"

namespace detent::server {
namespace {

bool has_header(const net::HttpRequest& request, std::string_view name) {
  return std::ranges::any_of(request.headers,
                             [name](const auto& header) { return header.first == name; });
}

bool has_versions(std::string_view pattern) {
  return pattern.starts_with("/v1/tasks/{id}") || pattern.ends_with("/keys/{key}");
}

}  // namespace

std::string etag_of(const TaskSnapshot& view) {
  std::string record = encode_record(view.task);
  record.append(to_string(view.state));
  // Versions of one task differ by chance once in 2^64.
  std::array<char, 16> digits{};
  const auto written =
      std::to_chars(digits.data(), digits.data() + digits.size(), fnv1a(record), 16);
  return '"' + std::string(digits.data(), written.ptr) + '"';
}

bool allows(std::string_view if_match, std::string_view etag) noexcept {
  while (!if_match.empty()) {
    const std::size_t comma = std::min(if_match.find(','), if_match.size());
    std::string_view tag = if_match.substr(0, comma);
    if_match.remove_prefix(std::min(comma + 1, if_match.size()));
    tag.remove_prefix(std::min(tag.find_first_not_of(" \t"), tag.size()));
    tag = tag.substr(0, tag.find_last_not_of(" \t") + 1);
    if (tag == "*" || tag == etag) return true;
  }
  return false;
}

std::optional<std::string> if_match_of(const net::HttpRequest& request) {
  std::optional<std::string> list;
  for (const auto& [name, value] : request.headers) {
    if (name != "if-match") continue;
    if (list) list->push_back(',');
    list = list.value_or("") + value;
  }
  return list;
}

std::optional<net::HttpResponse> refuse_conditions(const net::HttpRequest& request,
                                                   std::string_view pattern) {
  const bool is_safe =
      request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS";
  if (is_safe) return std::nullopt;
  for (const char* const name : {"If-None-Match", "If-Unmodified-Since"}) {
    if (!has_header(request, net::to_lower(name))) continue;
    return http_problem(400, std::string(name) + " is not supported: use If-Match for a task");
  }
  const std::optional<std::string> if_match = if_match_of(request);
  if (!if_match) return std::nullopt;
  if (!has_versions(pattern)) {
    return http_problem(400, "If-Match is not supported here: use it only for a single task");
  }
  if (if_match->find_first_not_of(" \t,") != std::string::npos) return std::nullopt;
  return http_problem(
      412, "If-Match is empty, so it matches no version: send the ETag of the task, or *");
}

}  // namespace detent::server
