#include "gateway/queue_plan.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/fan_out.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/json_writer.h"
#include "protocol/json/queue_parser.h"
#include "protocol/json/queue_renderer.h"
#include "protocol/json/read_answer.h"
#include "protocol/json/request_parser.h"

namespace detent::gateway {
namespace {

using Places = std::vector<ShardNumber>;

std::vector<Part> parts_at(const net::HttpRequest& request, const Places& places) {
  std::vector<Part> parts;
  for (const ShardNumber shard : places) parts.push_back({.shard = shard, .request = request});
  return parts;
}

/// The partitions besides the home, as the queue that the home has answered with says.
Places others_of(const QueueView& home, ShardNumber shards) {
  Places places = places_of(home.stats.queue, home.settings.partitions, shards);
  places.erase(places.begin());
  return places;
}

/// The first answer that is neither a success nor that there is no such queue.
std::optional<net::HttpResponse> failure_among(Answers& answers) {
  const auto failed = std::ranges::find_if_not(
      answers, [](const auto& one) { return is_success(one) || one.status == 404; });
  if (failed == answers.end()) return std::nullopt;
  return std::move(*failed);
}

bool has_tasks(const QueueStats& stats) noexcept {
  return stats.scheduled + stats.ready + stats.leased + stats.dead > 0;
}

/// The queue as its home has answered, with what the others have of it.
Result<Step> add_partitions(QueueView view, const Answers& others) {
  for (const net::HttpResponse& answer : others) {
    if (!is_success(answer)) continue;  // not made yet
    ASSIGN_OR_RETURN(const QueueView other, json::parse_queue(answer.body));
    add_partition(view, other);
  }
  return Step(joined(others, json::render_queue(view)));
}

/// A worker's request for tasks of a queue with partitions, on its way from one to the next.
struct Lease {
  net::HttpRequest request;  // as it came
  net::HttpRequest at_once;  // the same, that does not wait
  bool may_wait = false;
  Places places;
  std::size_t asked = 0;
};

bool has_leases(const net::HttpResponse& answer) {
  const auto tasks = json::take_list(answer.body, "tasks");
  return is_success(answer) && tasks && !tasks->empty();
}

Plan ask_next(Lease lease) {
  Plan plan = to_shard(lease.at_once, lease.places[lease.asked++]);
  plan.join = [lease = std::move(lease)](Answers answers) mutable -> Step {
    net::HttpResponse& answer = answers.front();
    if (has_leases(answer)) return std::move(answer);
    const bool is_refused = !is_success(answer) && !is_server_failure(answer);
    if (is_refused) return std::move(answer);  // all others would refuse it, too
    if (lease.asked < lease.places.size()) return ask_next(std::move(lease));
    if (!lease.may_wait) return std::move(answer);
    Plan wait = to_shard(lease.request, lease.places.front());
    wait.parts = parts_at(lease.request, lease.places);
    wait.wanted = Wanted::first;
    return wait;
  };
  return plan;
}

/// The body without how long the worker waits. Requires: a server takes it.
std::string without_wait(std::string_view body) {
  std::string text;
  json::JsonWriter writer(text);
  writer.begin_object();
  json::JsonReader reader(body);
  if (reader.enter_object()) {
    while (const auto member = reader.next_member()) {
      const std::string name = json::unescape(member->name);
      if (name != "wait" && name != "wait_ms") writer.name(name).raw(member->value);
    }
  }
  writer.end_object();
  return text;
}

}  // namespace

Step plan_queue(net::HttpRequest request, const std::string& queue, const ShardMap& map) {
  const ShardNumber shards = map.shards;
  if (request.method == "PATCH") {
    const auto patch = json::parse_queue_patch(request.body);
    if (patch && patch->partitions.value_or(1) > shards) {
      return problem({ErrorCode::invalid_argument,
                      "a queue has at most as many partitions as the cluster has shards: " +
                          std::to_string(shards),
                      "partitions"});
    }
  }
  Plan plan = to_shard(request, map.home_of(queue));
  plan.join = [request = std::move(request), shards](Answers answers) -> Step {
    net::HttpResponse& home = answers.front();
    if (!is_success(home)) return std::move(home);
    const auto view = json::parse_queue(home.body);
    if (!view) return std::move(home);
    const Places others = others_of(*view, shards);
    if (others.empty()) return std::move(home);
    Plan rest = to_shard(request, others.front());
    rest.parts = parts_at(request, others);
    rest.join = [view = *view](Answers told) -> Step {
      if (auto failure = failure_among(told)) return *std::move(failure);
      Result<Step> whole = json::as_answer(add_partitions(view, told));
      return whole ? *std::move(whole) : Step(problem(whole.error()));
    };
    return rest;
  };
  return plan;
}

Plan plan_remove_queue(net::HttpRequest request, const std::string& queue, const ShardMap& map) {
  const auto remove_home = [request, home = map.home_of(queue)] { return to_shard(request, home); };
  Plan look = to_shard(as_get(request, request.target), map.home_of(queue));
  look.join = [request = std::move(request), remove_home,
               shards = map.shards](Answers answers) -> Step {
    const auto view = json::parse_queue(answers.front().body);
    if (!is_success(answers.front()) || !view) return std::move(answers.front());
    const Places others = others_of(*view, shards);
    if (others.empty()) return remove_home();
    Plan look_on = to_shard(request, others.front());
    look_on.parts = parts_at(as_get(request, request.target), others);
    look_on.join = [request, remove_home, others, sum = *view](Answers told) mutable -> Step {
      if (auto failure = failure_among(told)) return *std::move(failure);
      for (const net::HttpResponse& answer : told) {
        const auto other = json::parse_queue(answer.body);
        if (is_success(answer) && other) add_partition(sum, *other);
      }
      if (has_tasks(sum.stats)) {
        return problem(
            {ErrorCode::conflict, "the queue has tasks: purge it, or let them end", "queue"});
      }
      Plan remove = to_shard(request, others.front());
      remove.parts = parts_at(request, others);
      remove.join = [remove_home](Answers removed) -> Step {
        if (auto failure = failure_among(removed)) return *std::move(failure);
        return remove_home();
      };
      return remove;
    };
    return look_on;
  };
  return look;
}

Plan plan_sweep_queue(net::HttpRequest request, const std::string& queue, const ShardMap& map) {
  const Places places = map.places_of(queue);
  Plan plan = to_shard(request, places.front());
  if (places.size() == 1) return plan;
  plan.parts = parts_at(request, places);
  plan.join = [](Answers answers) -> Step {
    if (auto failure = failure_among(answers)) return *std::move(failure);
    if (!is_success(answers.front())) return std::move(answers.front());  // there is no such queue
    std::uint64_t sum = 0;
    for (const net::HttpResponse& answer : answers) {
      if (is_success(answer)) sum += json::parse_count(answer.body).value_or(0);
    }
    return joined(answers, json::render_count(sum));
  };
  return plan;
}

Plan plan_lease(net::HttpRequest request, const std::string& queue, const ShardMap& map,
                std::uint64_t turn) {
  Places places = map.places_of(queue);
  const auto call = json::parse_lease(queue, request.body);
  if (places.size() == 1 || !call) return to_shard(std::move(request), places.front());
  const auto first = static_cast<std::ptrdiff_t>(turn % places.size());
  std::ranges::rotate(places, places.begin() + first);
  net::HttpRequest at_once = with_body(request, without_wait(request.body));
  return ask_next({.request = std::move(request),
                   .at_once = std::move(at_once),
                   .may_wait = call->wait > std::chrono::milliseconds{0},
                   .places = std::move(places)});
}

}  // namespace detent::gateway
