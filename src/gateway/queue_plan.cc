#include "gateway/queue_plan.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/fan_out.h"
#include "net/message/http_query.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/json_writer.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/request_codec.h"
#include "protocol/json/stats_point.h"

namespace detent::gateway {
namespace {

using Places = std::vector<ShardNumber>;

using Join = std::function<Step(Answers)>;

Plan to_places(const net::HttpRequest& request, const Places& places, Join join) {
  std::vector<Part> parts;
  for (const ShardNumber shard : places) parts.push_back({.shard = shard, .request = request});
  return {.parts = std::move(parts), .join = std::move(join)};
}

/// The shards of all partitions except the home, from the home's answer.
Places others_of(const QueueView& home, ShardNumber shards) {
  Places places = places_of(home.stats.queue, home.settings.partitions, shards);
  places.erase(places.begin());
  return places;
}

/// The first answer that is neither a success nor "no such queue".
std::optional<net::HttpResponse> failure_among(Answers& answers) {
  const auto failed = std::ranges::find_if_not(
      answers, [](const auto& one) { return is_success(one) || one.status == 404; });
  if (failed == answers.end()) return std::nullopt;
  return std::move(*failed);
}

bool has_tasks(const QueueStats& stats) noexcept {
  return stats.scheduled + stats.ready + stats.leased + stats.dead > 0;
}

/// Adds the counts of the other partitions to the home's answer.
Result<Step> add_partitions(QueueView view, const Answers& others) {
  for (const net::HttpResponse& answer : others) {
    if (!is_success(answer)) continue;  // not made yet
    ASSIGN_OR_RETURN(const QueueView other, json::parse_queue(answer.body));
    add_partition(view, other);
  }
  return Step(joined(others, json::render_queue(view)));
}

Result<Step> add_histories(const Answers& answers) {
  ASSIGN_OR_RETURN(QueueHistory sum, json::parse_queue_history(answers.front().body));
  for (const net::HttpResponse& answer : std::span(answers).subspan(1)) {
    ASSIGN_OR_RETURN(const QueueHistory more, json::parse_queue_history(answer.body));
    add_partition(sum, more);
  }
  return Step(joined(answers, json::render_queue_history(sum)));
}

/// A running removal of a queue: the other partitions, the home, and then the other partitions
/// again, because a concurrent change of settings may have created a partition again.
struct Removal {
  net::HttpRequest request;
  ShardNumber home = 0;
  Places others = {};
};

/// The last round; then the answer is the home's, or that of a partition that was still there.
Step remove_rest(const Removal& removal, net::HttpResponse home) {
  if (removal.others.empty()) return home;
  return to_places(
      removal.request, removal.others, [home = std::move(home)](Answers removed) -> Step {
        if (auto failure = failure_among(removed)) {
          if (failure->status != 409) return *std::move(failure);
          return problem({ErrorCode::unavailable,
                          "a partition of the queue was created again during the removal, and "
                          "has tasks: repeat the PATCH that created the queue, purge the queue, "
                          "and DELETE it again",
                          "queue"});
        }
        const auto found = std::ranges::find_if(removed, is_success);
        if (is_success(home) || found == removed.end()) return home;
        return std::move(*found);
      });
}

/// A put may come during a removal. Some partitions are then gone, and the remaining partition
/// keeps the task.
net::HttpResponse half_removed(net::HttpResponse failure) {
  if (failure.status != 409) return failure;
  return problem({ErrorCode::conflict,
                  "the queue got a task during the removal, and some of its partitions are already "
                  "removed: DELETE the queue again when it is empty, or repeat the PATCH that "
                  "created it to keep the queue",
                  "queue"});
}

Plan remove_others(const Removal& removal) {
  return to_places(removal.request, removal.others, [removal](Answers removed) -> Step {
    if (auto failure = failure_among(removed)) return half_removed(*std::move(failure));
    Plan last = to_shard(removal.request, removal.home);
    last.join = [removal](Answers answers) -> Step {
      net::HttpResponse& home = answers.front();
      if (!is_success(home) && home.status != 404) return half_removed(std::move(home));
      return remove_rest(removal, std::move(home));
    };
    return last;
  });
}

bool has_leases(const net::HttpResponse& answer) {
  json::JsonDocument document;
  const auto tasks = json::take_list(document, answer.body, "tasks");
  return is_success(answer) && tasks && (*tasks)->begin() != (*tasks)->end();
}

/// Returns true if the answer has tasks, or if all other partitions would give the same answer.
bool ends_lease(const net::HttpResponse& answer) {
  const bool is_refused = !is_success(answer) && !is_server_failure(answer);
  return is_refused || has_leases(answer);
}

/// An error of one partition takes precedence over "no tasks" of the others.
Step none_has_tasks(Answers answers) {
  const auto failed = std::ranges::find_if(answers, is_server_failure);
  return std::move(failed != answers.end() ? *failed : answers.back());
}

/// The body with the worker waiting so long. Requires: a server takes it.
std::string with_wait(std::string_view body, std::chrono::milliseconds wait) {
  std::string text;
  json::JsonWriter writer(text);
  writer.begin_object();
  json::JsonDocument document;
  if (const auto object = document.read(body)) {
    for (const json::JsonValue& member : **object) {
      const std::string name = json::unescape(member.name);
      if (name != "wait" && name != "wait_ms") writer.name(name).raw(member.text);
    }
  }
  if (wait > std::chrono::milliseconds{0}) writer.name("wait_ms").number(wait.count());
  writer.end_object();
  return text;
}

/// Of a queue with partitions, at these places.
Plan lease_in_turn(net::HttpRequest request, Places places, bool may_wait) {
  const net::HttpRequest at_once = with_body(request, with_wait(request.body, {}));
  Plan plan = to_places(at_once, places, none_has_tasks);
  plan.in_turn = InTurn{.will_do = ends_lease, .goes_on_without_slow = may_wait};
  if (!may_wait) return plan;
  plan.join = [request = std::move(request), places = std::move(places)](const Answers&) -> Step {
    Plan wait =
        to_places(request, places, [](Answers first) -> Step { return std::move(first.front()); });
    wait.wanted = Wanted::first;
    return wait;
  };
  return plan;
}

}  // namespace

Step plan_queue(net::HttpRequest request, const std::string& queue, const ShardMap& map) {
  const ShardNumber shards = map.shards;
  if (request.method == "PATCH") {
    const auto patch = json::parse_queue_patch(request.body);
    if (patch && patch->partitions.value_or(1) > shards) {
      return problem({ErrorCode::invalid_argument,
                      "partitions must be at most the number of shards of the cluster, " +
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
    return to_places(request, others, [view = *view](Answers told) -> Step {
      if (auto failure = failure_among(told)) return *std::move(failure);
      Result<Step> whole = json::as_answer(add_partitions(view, told));
      return whole ? *std::move(whole) : Step(problem(whole.error()));
    });
  };
  return plan;
}

Plan plan_queue_history(net::HttpRequest request, const ShardMap& map) {
  net::QueryParameter queue{"queue"};
  net::QueryParameter span{"span"};
  net::QueryParameter step{"step"};
  const std::array<net::QueryParameter*, 3> parameters{&queue, &span, &step};
  const Result<void> taken = net::take_query(request.target, parameters);
  if (!taken || !queue.value) return to_shard(std::move(request), 0);  // which refuses it
  return to_places(request, map.places_of(*queue.value), [](Answers told) -> Step {
    if (auto failure = failure_among(told)) return *std::move(failure);
    if (std::ranges::none_of(told, is_success)) return std::move(told.front());
    std::erase_if(told, [](const auto& answer) { return !is_success(answer); });  // not made yet
    Result<Step> whole = json::as_answer(add_histories(told));
    return whole ? *std::move(whole) : Step(problem(whole.error()));
  });
}

Plan plan_remove_queue(net::HttpRequest request, const std::string& queue, const ShardMap& map) {
  Plan look = to_shard(as_get(request, request.target), map.home_of(queue));
  Removal removal{.request = std::move(request), .home = map.home_of(queue)};
  look.join = [removal = std::move(removal), shards = map.shards](Answers answers) mutable -> Step {
    net::HttpResponse& home = answers.front();
    const auto view = json::parse_queue(home.body);
    if (home.status == 404) {
      // A removal may have stopped right after its home.
      for (ShardNumber shard = 0; shard < shards; ++shard) {
        if (shard != removal.home) removal.others.push_back(shard);
      }
      return remove_rest(removal, std::move(home));
    }
    if (!is_success(home) || !view) return std::move(home);
    removal.others = others_of(*view, shards);
    if (removal.others.empty()) return to_shard(removal.request, removal.home);
    const net::HttpRequest get = as_get(removal.request, removal.request.target);
    return to_places(get, removal.others, [removal, sum = *view](Answers told) mutable -> Step {
      if (auto failure = failure_among(told)) return *std::move(failure);
      for (const net::HttpResponse& answer : told) {
        const auto other = json::parse_queue(answer.body);
        if (is_success(answer) && other) add_partition(sum, *other);
      }
      if (!has_tasks(sum.stats)) return remove_others(removal);
      return problem({ErrorCode::conflict,
                      "the queue has tasks: purge it, or wait until its tasks have ended",
                      "queue"});
    });
  };
  return look;
}

Plan plan_sweep_queue(net::HttpRequest request, const std::string& queue, const ShardMap& map) {
  const ShardNumber home = map.home_of(queue);
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  Plan look = to_shard(as_get(request, std::string(path.substr(0, path.rfind('/')))), home);
  look.join = [request = std::move(request), home, shards = map.shards](Answers answers) -> Step {
    const auto view = json::parse_queue(answers.front().body);
    if (!is_success(answers.front()) || !view) return std::move(answers.front());
    Places places = others_of(*view, shards);
    if (places.empty()) return to_shard(request, home);
    places.insert(places.begin(), home);
    return to_places(request, places, [](Answers swept) -> Step {
      if (auto failure = failure_among(swept)) return *std::move(failure);
      std::uint64_t sum = 0;
      for (const net::HttpResponse& answer : swept) {
        if (is_success(answer)) sum += json::parse_count(answer.body).value_or(0);
      }
      return joined(swept, json::render_count(sum));
    });
  };
  return look;
}

Plan plan_lease(net::HttpRequest request, const std::string& queue, const ShardMap& map,
                std::uint64_t turn) {
  using std::chrono::milliseconds;
  Places places = map.places_of(queue);
  const auto call = json::parse_lease(queue, request.body);
  if (!call) return to_shard(std::move(request), places.front());
  const milliseconds wait = call->wait;
  const bool may_wait = wait > milliseconds{0};
  const auto again = [request, queue, wait, turn](const ShardMap& now, milliseconds after) -> Step {
    const milliseconds left = std::max(wait - after, milliseconds{0});
    return plan_lease(with_body(request, with_wait(request.body, left)), queue, now, turn);
  };
  const auto first = static_cast<std::ptrdiff_t>(turn % places.size());
  std::rotate(places.begin(), places.begin() + first, places.end());
  Plan plan = places.size() == 1 ? to_shard(std::move(request), places.front())
                                 : lease_in_turn(std::move(request), std::move(places), may_wait);
  if (may_wait) plan.renewal = Renewal{.queue = queue, .plan = again};
  return plan;
}

}  // namespace detent::gateway
