// The messages that nodes send each other for beanstalk clients. A decoded message equals the
// encoded message, and damaged messages are refused.
#include "server/beanstalk/cluster_jobs.h"

#include <gtest/gtest.h>

namespace detent::server {
namespace {

using namespace std::chrono_literals;

ShardAsk whole_ask() {
  using beanstalk::Verb;
  return {
      .kind = ShardAsk::Kind::take,
      .calls = {{.command = {.verb = Verb::put,
                             .priority = 4'294'967'295,
                             .delay = 4'294'967'295s,
                             .time_out = 60s,
                             .body = std::string("a\0\r\n", 4)},
                 .queue = "q"},
                {.command = {.verb = Verb::touch, .id = (1ull << 53) - 1},
                 .lease = LeaseToken{.epoch = ~0ull, .number = 7},
                 .length = 30s,
                 .use = {.using_it = 1, .watching = 2, .waiting = 3, .deletes = 4, .pauses = 5}}},
      .queues = {"a", "b"},
      .wait = 60s,
      .number = ~0ull,
      .leases = {{.epoch = 1, .number = 2}, {.epoch = 3, .number = 4}}};
}

ShardAnswer whole_answer() {
  return {
      .answers =
          {{.reply = "BURIED\r\n", .lease = JobAnswer::Lease::over},
           {.reply = "DELETED\r\n", .counted_in = "q"},
           {.reply = "RESERVED 1 1\r\nx\r\n",
            .lease = JobAnswer::Lease::taken,
            .taken = {.id = 1, .token = {.epoch = 2, .number = 3}, .length = 60s, .queue = "q"}}},
      .head = ReadyHead{.priority = 1, .due_at = WallTime{-5ms}, .id = {257}},
      .all = {
          .counts = {.urgent = 1, .ready = 2, .reserved = 3, .delayed = 4, .dead = 5, .total = 6},
          .timeouts = 7,
          .queues = {"a", "b"}}};
}

TEST(ClusterJobs, AnEncodedMessageIsDecodedUnchanged) {
  EXPECT_EQ(decode_ask(encode(whole_ask())).value(), whole_ask());
  EXPECT_EQ(decode_answer(encode(whole_answer())).value(), whole_answer());
  EXPECT_EQ(decode_ask(encode(ShardAsk{})).value(), ShardAsk{});
  EXPECT_EQ(decode_answer(encode(ShardAnswer{})).value(), ShardAnswer{});
}

TEST(ClusterJobs, TooManyLeasesAreRefused) {
  ShardAsk ask{.kind = ShardAsk::Kind::give_back};
  ask.leases.resize(ShardAsk::kMostLeases);
  EXPECT_EQ(decode_ask(encode(ask)).value(), ask);
  ask.leases.emplace_back();
  EXPECT_FALSE(decode_ask(encode(ask)));
}

TEST(ClusterJobs, ATruncatedOrTooLongMessageIsRefused) {
  const std::string ask = encode(whole_ask());
  for (std::size_t size = 0; size < ask.size(); ++size) {
    EXPECT_FALSE(decode_ask(std::string_view(ask).substr(0, size))) << size;
  }
  const std::string answer = encode(whole_answer());
  for (std::size_t size = 0; size < answer.size(); ++size) {
    EXPECT_FALSE(decode_answer(std::string_view(answer).substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_ask(ask + "x"));
  EXPECT_FALSE(decode_answer(answer + "x"));
}

TEST(ClusterJobs, AnInvalidQuestionIsRefused) {
  std::string of_another = encode(whole_ask());
  of_another.front() = 2;
  EXPECT_FALSE(decode_ask(of_another)) << "of another version";
  std::string no_kind = encode(ShardAsk{});
  no_kind[1] = 6;
  EXPECT_FALSE(decode_ask(no_kind));
  EXPECT_FALSE(decode_ask(encode(ShardAsk{.kind = ShardAsk::Kind::take}))) << "of no queue";
  ShardAsk no_call;
  no_call.calls.push_back({.command = {.verb = beanstalk::Verb::reserve}});
  EXPECT_FALSE(decode_ask(encode(no_call)));
}

}  // namespace
}  // namespace detent::server
