#include "gateway/schedule_plan.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gateway/fan_out.h"
#include "net/message/http_query.h"

namespace detent::gateway {
namespace {

/// The path of the schedule that the target of a request about it names, as it was sent.
std::string path_of_schedule(const std::string& target) {
  constexpr std::string_view kPrefix = "/v1/schedules/";
  const std::size_t end = target.find_first_of("/?", kPrefix.size());
  return target.substr(0, end);
}

/// Which of the shards asked, 0 … n − 1, have it.
std::vector<ShardNumber> holders(const Answers& answers) {
  std::vector<ShardNumber> shards;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (is_success(answers[i])) shards.push_back(static_cast<ShardNumber>(i));
  }
  return shards;
}

std::optional<net::HttpResponse> first_server_failure(Answers& answers) {
  const auto failed =
      std::ranges::find_if(answers, [](const auto& one) { return is_server_failure(one); });
  if (failed == answers.end()) return std::nullopt;
  return std::move(*failed);
}

/// Asks every shard for the schedule.
Plan look_for_schedule(const net::HttpRequest& request, ShardNumber shards,
                       std::function<Step(Answers)> join) {
  Plan plan;
  const net::HttpRequest get = as_get(request, path_of_schedule(request.target));
  for (ShardNumber shard = 0; shard < shards; ++shard) plan.parts.push_back({shard, get});
  plan.join = std::move(join);
  return plan;
}

net::HttpResponse is_elsewhere(const std::string& target) {
  const std::string path = path_of_schedule(target);
  const auto name = net::percent_decode(path.substr(path.rfind('/') + 1));
  return problem(
      {ErrorCode::conflict,
       "schedule " + name.value_or("") +
           " cannot move to this queue, because its present queue is on another shard of the "
           "cluster: remove the schedule, then create it with this queue",
       "queue"});
}

Plan remove_from(const net::HttpRequest& request, const std::vector<ShardNumber>& shards,
                 net::HttpResponse then) {
  net::HttpRequest remove = as_get(request, path_of_schedule(request.target));
  remove.method = "DELETE";
  Plan plan;
  for (const ShardNumber shard : shards) plan.parts.push_back({shard, remove});
  plan.join = [then = std::move(then)](Answers removed) -> Step {
    if (auto failure = first_server_failure(removed)) return *std::move(failure);
    return then;
  };
  return plan;
}

/// The schedule was put on the shard `own`, and `put` is the answer; `again` has the answers of all
/// shards that have a schedule with this name now.
Step leave_one(const net::HttpRequest& request, ShardNumber own, net::HttpResponse put,
               Answers again) {
  std::vector<ShardNumber> others = holders(again);
  std::erase(others, own);
  if (!others.empty() && others.front() < own) {
    return remove_from(request, {own}, is_elsewhere(request.target));
  }
  if (auto failure = first_server_failure(again)) return *std::move(failure);
  if (others.empty()) return put;
  return remove_from(request, others, std::move(put));
}

}  // namespace

Plan plan_put_schedule(net::HttpRequest request, ShardNumber shards) {
  const std::optional<std::string> queue = queue_in(request.body);
  if (!queue) return to_shard(std::move(request), 0);  // which refuses it
  const ShardNumber own = shard_of_queue(*queue, shards);
  const net::HttpRequest& asked = request;
  return look_for_schedule(asked, shards, [request, own, shards](Answers answers) -> Step {
    const std::vector<ShardNumber> found = holders(answers);
    if (!found.empty() && found.front() != own) return is_elsewhere(request.target);
    // A shard that does not answer may have one of this name.
    if (auto failure = first_server_failure(answers)) return *std::move(failure);
    Plan put = to_shard(request, own);
    if (found.size() == 1) return put;
    put.join = [request, own, shards](Answers made) -> Step {
      if (!is_success(made.front())) return std::move(made.front());
      return look_for_schedule(request, shards, [request, own, put = made.front()](Answers again) {
        return leave_one(request, own, put, std::move(again));
      });
    };
    return put;
  });
}

Plan plan_get_schedule(net::HttpRequest request, ShardNumber shards) {
  Plan plan;
  for (ShardNumber shard = 0; shard < shards; ++shard) plan.parts.push_back({shard, request});
  plan.join = [](Answers answers) -> Step {
    const std::vector<ShardNumber> found = holders(answers);
    if (!found.empty()) return std::move(answers[found.front()]);
    if (auto failure = first_server_failure(answers)) return *std::move(failure);
    // One that has it may refuse the rest of the request.
    const auto refused =
        std::ranges::find_if(answers, [](const auto& one) { return one.status != 404; });
    return std::move(refused == answers.end() ? answers.front() : *refused);
  };
  return plan;
}

Plan plan_change_schedule(net::HttpRequest request, ShardNumber shards) {
  const net::HttpRequest& asked = request;
  return look_for_schedule(asked, shards, [request](Answers answers) -> Step {
    const std::vector<ShardNumber> found = holders(answers);
    if (found.empty()) {
      if (auto failure = first_server_failure(answers)) return *std::move(failure);
      return to_shard(request, 0);  // which says why not
    }
    if (request.method != "DELETE") return to_shard(request, found.front());
    std::vector<Part> parts;
    for (const ShardNumber shard : found) parts.push_back({shard, request});
    return to_each(std::move(parts), [](Answers removed) -> Result<Step> {
      return Step(std::move(removed.front()));
    });
  });
}

}  // namespace detent::gateway
