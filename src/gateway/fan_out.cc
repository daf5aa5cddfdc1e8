#include "gateway/fan_out.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "net/message/http_query.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/problem.h"

namespace detent::gateway {
namespace {

bool says_who_may_read(std::string_view header) noexcept {
  return header.starts_with("access-control-") || header == "vary";
}

std::optional<HandOutLateness> joint_lateness(const QueuePoint& one, const QueuePoint& other) {
  if (!one.lateness || !other.lateness) return one.lateness ? one.lateness : other.lateness;
  const auto total = [](const QueuePoint& point) {
    return point.lateness->mean * static_cast<std::int64_t>(point.leased);
  };
  const auto leased = static_cast<std::int64_t>(one.leased + other.leased);
  return HandOutLateness{.mean = (total(one) + total(other)) / std::max<std::int64_t>(leased, 1),
                         .max = std::max(one.lateness->max, other.lateness->max)};
}

bool is_framing(std::string_view header) noexcept {
  return header == "content-length" || header == "transfer-encoding" || header == "expect";
}

}  // namespace

net::HttpResponse problem(const Error& error) {
  return {.status = json::http_status(error.code),
          .content_type = std::string(json::kProblemContentType),
          .body = json::render_problem(error)};
}

net::HttpResponse joined(const Answers& answers, std::string body) {
  net::HttpResponse all{.status = 200, .body = std::move(body)};
  for (const auto& header : answers.front().headers) {
    if (says_who_may_read(header.first)) all.headers.push_back(header);
  }
  return all;
}

net::HttpRequest with_body(const net::HttpRequest& request, std::string body) {
  net::HttpRequest other{.method = request.method,
                         .target = request.target,
                         .headers = {},
                         .body = std::move(body),
                         .peer = request.peer};
  std::ranges::copy_if(request.headers, std::back_inserter(other.headers),
                       [](const auto& header) { return !is_framing(header.first); });
  return other;
}

net::HttpRequest as_get(const net::HttpRequest& request, std::string target) {
  net::HttpRequest get = with_body(request, "");
  get.method = "GET";
  get.target = std::move(target);
  return get;
}

std::string target_without(std::string_view target, std::initializer_list<std::string_view> names) {
  const std::size_t mark = std::min(target.find('?'), target.size());
  std::string kept(target.substr(0, mark));
  kept.push_back('?');
  std::string_view rest = target.substr(std::min(mark + 1, target.size()));
  while (!rest.empty()) {
    const std::string_view parameter = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(parameter.size() + 1, rest.size()));
    const auto name = net::percent_decode(parameter.substr(0, parameter.find('=')));
    if (name && std::ranges::find(names, *name) != names.end()) continue;
    kept.append(parameter).push_back('&');
  }
  return kept;
}

bool has_parameter(std::string_view target, std::string_view name) {
  // Both also lose empty parameters.
  return target_without(target, {name}) != target_without(target, {});
}

Plan to_shard(net::HttpRequest request, ShardNumber shard) {
  Plan plan;
  plan.parts.push_back({.shard = shard, .request = std::move(request)});
  plan.join = [](Answers answers) -> Step { return std::move(answers.front()); };
  return plan;
}

Plan to_each(std::vector<Part> parts, Merge merge) {
  return {.parts = std::move(parts), .join = [merge = std::move(merge)](Answers answers) -> Step {
            const auto failed =
                std::ranges::find_if_not(answers, [](const auto& one) { return is_success(one); });
            if (failed != answers.end()) return std::move(*failed);
            Result<Step> step = json::as_answer(merge(std::move(answers)));
            if (!step) return problem(step.error());
            return *std::move(step);
          }};
}

Plan to_all(const net::HttpRequest& request, ShardNumber shards, Merge merge) {
  std::vector<Part> parts;
  parts.reserve(shards);
  for (ShardNumber shard = 0; shard < shards; ++shard) parts.push_back({shard, request});
  return to_each(std::move(parts), std::move(merge));
}

std::optional<std::string> queue_in(std::string_view body) {
  json::JsonDocument document;
  json::JsonField queue{"queue"};
  const std::array fields{&queue};
  if (!json::take_fields(document, body, fields, json::UnknownFields::skip)) return std::nullopt;
  Result<std::string> name = json::read_string(queue);
  if (!name) return std::nullopt;
  return *std::move(name);
}

std::optional<ShardNumber> place_in(std::string_view task, const ShardMap& map,
                                    std::uint64_t turn) {
  json::JsonDocument document;
  json::JsonField queue{"queue"};
  json::JsonField key{"key"};
  const std::array fields{&queue, &key};
  if (!json::take_fields(document, task, fields, json::UnknownFields::skip)) return std::nullopt;
  const Result<std::string> name = json::read_string(queue);
  if (!name) return std::nullopt;
  // A key that is not a string is refused by the shard that receives it.
  const Result<std::string> of = key.given() ? json::read_string(key) : Result<std::string>("");
  return map.place_of(*name, of ? *of : "", turn);
}

void add_partition(QueueStats& sum, const QueueStats& more) {
  sum.scheduled += more.scheduled;
  sum.ready += more.ready;
  sum.leased += more.leased;
  sum.dead += more.dead;
  sum.oldest_ready_age = std::max(sum.oldest_ready_age, more.oldest_ready_age);
  if (more.last_handed_out_age) {
    sum.last_handed_out_age = std::min(sum.last_handed_out_age.value_or(*more.last_handed_out_age),
                                       *more.last_handed_out_age);
  }
}

void add_partition(QueueView& sum, const QueueView& more) {
  add_partition(sum.stats, more.stats);
  sum.bytes += more.bytes;
}

void add_partition(QueueHistory& sum, const QueueHistory& more) {
  std::map<WallTime, QueuePoint> points;
  for (const QueuePoint& point : sum.points) points.emplace(point.at, point);
  for (const QueuePoint& point : more.points) {
    const auto [known, is_new] = points.emplace(point.at, point);
    if (is_new) continue;
    QueuePoint& joint = known->second;
    joint.lateness = joint_lateness(joint, point);
    joint.accepted += point.accepted;
    joint.fired += point.fired;
    joint.leased += point.leased;
    joint.completed += point.completed;
    joint.failed += point.failed;
    joint.expired += point.expired;
    joint.died += point.died;
  }
  sum.points.clear();
  for (const auto& [at, point] : points) sum.points.push_back(point);
  sum.since = std::max(sum.since, more.since);
}

}  // namespace detent::gateway
