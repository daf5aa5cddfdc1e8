// Plans carried out on shards that a test plays by hand.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gateway/request_plan.h"

namespace detent::gateway {

/// What a shard answers.
using PlayShard = std::function<net::HttpResponse(const Part&)>;

struct CarriedOut {
  net::HttpResponse answer;
  std::vector<std::vector<Part>> rounds;  // what was asked
};

/// Of a plan that wants the first answer that is the last part's.
inline CarriedOut carry_out(net::HttpRequest request, const ShardMap& map, const PlayShard& play,
                            std::uint64_t turn = 0) {
  CarriedOut done;
  Step step = plan_request(std::move(request), map, turn);
  while (Plan* const plan = std::get_if<Plan>(&step)) {
    std::vector<net::HttpResponse> answers;
    for (const Part& part : plan->parts) answers.push_back(play(part));
    if (plan->wanted == Wanted::first) answers = {std::move(answers.back())};
    done.rounds.push_back(plan->parts);
    Step next = plan->join(std::move(answers));
    step = std::move(next);
  }
  done.answer = std::get<net::HttpResponse>(std::move(step));
  return done;
}

inline CarriedOut carry_out(net::HttpRequest request, ShardNumber shards, const PlayShard& play) {
  return carry_out(std::move(request), ShardMap{.shards = shards}, play);
}

inline net::HttpRequest get(std::string target) {
  return {.method = "GET", .target = std::move(target), .headers = {}, .body = ""};
}
inline net::HttpRequest post(std::string target, std::string body) {
  return {.method = "POST", .target = std::move(target), .headers = {}, .body = std::move(body)};
}
inline net::HttpResponse ok_json(std::string body) {
  return {.status = 200, .body = std::move(body)};
}
inline net::HttpResponse unreachable() {
  return {.status = 503,
          .content_type = "application/problem+json",
          .body = R"({"type":"urn:detent:error:unavailable","status":503})",
          .headers = {{"retry-after", "2"}}};
}
inline net::HttpResponse not_there() {
  return {.status = 404, .content_type = "application/problem+json", .body = R"({"status":404})"};
}

/// The first name q0, q1, … of a queue of this shard.
inline std::string queue_of(ShardNumber shard, ShardNumber shards) {
  for (int i = 0;; ++i) {
    std::string name = "q" + std::to_string(i);
    if (shard_of_queue(name, shards) == shard) return name;
  }
}

}  // namespace detent::gateway
