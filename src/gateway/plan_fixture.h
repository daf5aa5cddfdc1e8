// Runs plans against shards that the test simulates.
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

/// The answer of a simulated shard; status 0: the answer is slow.
using PlayShard = std::function<net::HttpResponse(const Part&)>;

struct CarriedOut {
  net::HttpResponse answer;
  std::vector<std::vector<Part>> rounds;  // the requests of each round
};

/// Asks the parts one after the other. Returns the answer if one of them is final, else all
/// answers.
inline std::variant<net::HttpResponse, std::vector<net::HttpResponse>> ask_in_turn(
    const Plan& plan, const PlayShard& play, std::vector<Part>& asked) {
  std::vector<net::HttpResponse> answers;
  for (const Part& part : plan.parts) {
    net::HttpResponse answer = play(part);
    asked.push_back(part);
    const bool is_slow = answer.status == 0;
    EXPECT_FALSE(is_slow && !plan.in_turn->goes_on_without_slow);
    if (is_slow) continue;
    if (plan.in_turn->will_do(answer)) return answer;
    answers.push_back(std::move(answer));
  }
  return answers;
}

/// Carries out a plan. If the plan wants the first answer, the last part gives it.
inline CarriedOut carry_out(Step step, const PlayShard& play) {
  CarriedOut done;
  while (Plan* const plan = std::get_if<Plan>(&step)) {
    std::vector<net::HttpResponse> answers;
    std::vector<Part>& asked = done.rounds.emplace_back();
    if (plan->in_turn) {
      auto told = ask_in_turn(*plan, play, asked);
      if (auto* const answer = std::get_if<net::HttpResponse>(&told)) {
        done.answer = std::move(*answer);
        return done;
      }
      answers = std::get<1>(std::move(told));
    } else {
      asked = plan->parts;
      for (const Part& part : plan->parts) answers.push_back(play(part));
      if (plan->wanted == Wanted::first) answers = {std::move(answers.back())};
    }
    Step next = plan->join(std::move(answers));
    step = std::move(next);
  }
  done.answer = std::get<net::HttpResponse>(std::move(step));
  return done;
}

inline CarriedOut carry_out(net::HttpRequest request, const ShardMap& map, const PlayShard& play,
                            std::uint64_t turn = 0) {
  return carry_out(plan_request(std::move(request), map, turn), play);
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

/// Returns the first of the names q0, q1, … whose queue belongs to this shard.
inline std::string queue_of(ShardNumber shard, ShardNumber shards) {
  for (int i = 0;; ++i) {
    std::string name = "q" + std::to_string(i);
    if (shard_of_queue(name, shards) == shard) return name;
  }
}

}  // namespace detent::gateway
