// Gives mutated bodies to every parser. No parser may crash (the sanitizer builds run this test,
// too). Each returns a value or a usable error. An accepted request must be equal after it is
// written and read again.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "base/test_seed.h"
#include "protocol/json/answer_codec.h"
#include "protocol/json/problem.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/request_codec.h"
#include "protocol/json/stats_codec.h"

namespace detent::json {
namespace {

constexpr std::array<std::string_view, 9> kBodies{
    R"({"queue":"mail","payload":{"a":[1,2.5e3,null],"b":"\u00e9\ud83d\ude00"},"delay":"30s"})",
    R"({"queue":"mail","payload_base64":"AP8=","due_at":"2026-01-02T03:04:05.678+08:00",)"
    R"("priority":7,"max_attempts":3,"visibility_timeout":"PT1M","backoff":{"initial":"1s"}})",
    R"([{"queue":"a","delay_ms":4294967295000},{"queue":"b","due_at":253402300799999},5])",
    "{\"queue\":\"a\"}\n{\"queue\":\"b\",\"backoff\":{\"max_ms\":1}}\n",
    R"({"max":1000,"wait":"60s","visibility_timeout_ms":2592000000,"worker":"w"})",
    R"({"paused":true,"max_tasks":null,"backoff":{"initial_ms":5},"retention":"1d","rate":50})",
    R"({"leases":["1-2"],"by":"60s"})",
    R"({"leases":["1-2","x"],"delay":"P1DT2H","error":"\"no\"\n"})",
    R"({"results":[{"id":"256","queue":"q","state":"ready","due_at":"2026-01-02T03:04:05Z"},)"
    R"({"status":"done"},{"error":{"type":"urn:detent:error:conflict","detail":"x"}}]})"};

constexpr std::array<std::string_view, 16> kPieces{"\"",
                                                   "\\",
                                                   "{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   ",",
                                                   "null",
                                                   "-",
                                                   "1e30",
                                                   "18446744073709551616",
                                                   "\\ud800",
                                                   "\xFF",
                                                   "\xC3\xA9",
                                                   "99999999999999999999d",
                                                   "\"queue\":"};

std::uint32_t size_of(std::string_view text) { return static_cast<std::uint32_t>(text.size()); }

std::string mutate(std::string body, Rng& rng) {
  for (std::uint32_t changes = 1 + rng.below(5); changes > 0 && !body.empty(); --changes) {
    const std::size_t at = rng.below(size_of(body));
    switch (rng.below(5)) {
      case 0:
        body[at] = static_cast<char>(rng.below(256));
        break;
      case 1:
        body.erase(at, 1 + rng.below(8));
        break;
      case 2:
        body.insert(at, kPieces[rng.below(kPieces.size())]);
        break;
      case 3:
        body.insert(at, body.substr(rng.below(size_of(body)), rng.below(24)));
        break;
      default:
        body[at] = static_cast<char>('0' + rng.below(10));
    }
  }
  return body;
}

/// An error must have a message, and a client must read the same code from its problem.
template <class T>
void expect_usable(const Result<T>& result) {
  if (result) return;
  ASSERT_FALSE(result.error().message.empty());
  ASSERT_EQ(parse_problem(http_status(result.error().code), render_problem(result.error())).code,
            result.error().code);
}

void expect_same_again(const Result<ScheduleRequest>& request) {
  expect_usable(request);
  if (!request) return;
  const auto again = parse_schedule(render_schedule(*request));
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->queue, request->queue);
  ASSERT_EQ(again->payload, request->payload);
  ASSERT_EQ(again->rules, request->rules);
  ASSERT_EQ(again->due, request->due);
}

void expect_same_again(const Result<QueuePatch>& patch) {
  expect_usable(patch);
  if (!patch) return;
  ASSERT_EQ(parse_queue_patch(render_queue_patch(*patch)).value(), *patch);
}

TEST(JsonFuzz, EveryParserReturnsAUsableResultForEveryBody) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  int accepted = 0;
  for (int round = 0; round < test_rounds(280'000); ++round) {
    const std::string body = mutate(std::string(kBodies[rng.below(kBodies.size())]), rng);
    SCOPED_TRACE(testing::Message() << testing::PrintToString(body));
    const auto request = parse_schedule(body);
    accepted += request ? 1 : 0;
    expect_same_again(request);
    const auto batch = parse_schedule_batch(body, rng.below(2) == 0 ? "application/x-ndjson" : "");
    expect_usable(batch);
    if (batch) {
      for (const auto& element : *batch) expect_same_again(element);
    }
    expect_usable(parse_lease("q", body));
    expect_usable(parse_complete(body));
    expect_usable(parse_fail(body));
    expect_usable(parse_edit(body));
    expect_usable(parse_cancel_batch(body));
    expect_usable(parse_move_batch(body));
    expect_usable(parse_extend(body));
    expect_usable(parse_release(body));
    expect_same_again(parse_queue_patch(body));
    expect_usable(parse_queue(body));
    expect_usable(parse_accepted(body));
    expect_usable(parse_schedule_results(body));
    expect_usable(parse_task(body));
    expect_usable(parse_leased_tasks(body));
    expect_usable(parse_lease_results(body));
    expect_usable(parse_stats(body));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(accepted, test_rounds(800));  // some mutated bodies are still valid
}

}  // namespace
}  // namespace detent::json
