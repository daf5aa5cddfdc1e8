// The work of a shard for beanstalk clients of other nodes: takes, the ends of takes (which may
// arrive before the take), and a store that fails.
#include "server/cluster/shard_jobs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "net/http_server/local_exchange.h"
#include "store/testing/fault_store.h"
#include "store/testing/memory_store.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;
using beanstalk::Verb;

class ShardJobsTest : public ::testing::Test {
 public:
  ~ShardJobsTest() override { engine_.stop(); }

 protected:
  using Kind = ShardAsk::Kind;

  /// An answer that comes once.
  struct Answer {
    std::atomic<bool> has_come{false};
    net::HttpResponse response;

    const net::HttpResponse& get() const {
      while (!has_come) std::this_thread::yield();
      return response;
    }
    ShardAnswer value() const { return decode_answer(get().body).value(); }
  };
  std::shared_ptr<Answer> send(const std::string& body) {
    auto answer = std::make_shared<Answer>();
    jobs_.handle(
        {.method = "POST", .target = std::string(kJobsTarget), .headers = {}, .body = body},
        net::Responder(std::make_shared<net::LocalExchange>(
            [this, answer](std::optional<net::HttpResponse> response) {
              const bool is_taken = is_taken_;
              if (is_taken) answer->response = *std::move(response);
              answer->has_come = true;
              return is_taken;
            })));
    return answer;
  }
  std::shared_ptr<Answer> ask(const ShardAsk& asked) { return send(encode(asked)); }
  std::shared_ptr<Answer> take(std::uint64_t number) {
    return ask({.kind = Kind::take, .queues = {"q"}, .wait = 60s, .number = number});
  }
  static ShardAsk put(std::size_t count) {
    ShardAsk puts;
    for (std::size_t i = 0; i < count; ++i) {
      puts.calls.push_back(
          {.command = {.verb = Verb::put, .time_out = 60s, .body = "x"}, .queue = "q"});
    }
    return puts;
  }

  std::atomic<bool> is_taken_{true};  // answers that come from now on
  ManualClock clock_;
  MemoryDisk disk_;
  FaultStore store_{MemoryStore::open(disk_).value()};
  EngineThread engine_{
      OpenEngine{.store = nullptr, .engine = Engine::open(store_, clock_, {.shard = 3}).value()},
      clock_};
  ShardJobs jobs_{engine_, clock_};
};

TEST_F(ShardJobsTest, CallsAreCarriedOutInOrderAndAnsweredOneEach) {
  const ShardAnswer put_two = ask(put(2))->value();
  ASSERT_EQ(put_two.answers.size(), 2u);
  EXPECT_EQ(put_two.answers[0].reply, "INSERTED 259\r\n");
  EXPECT_EQ(put_two.answers[1].reply, "INSERTED 515\r\n");
  EXPECT_EQ(ask({.kind = Kind::next, .queues = {"q", "r"}})->value().head->id, TaskId{259});
  EXPECT_FALSE(ask({.kind = Kind::next, .queues = {"r"}})->value().head);
  EXPECT_EQ(ask({.kind = Kind::all})->value().all.counts.ready, 2u);
}

TEST_F(ShardJobsTest, ATakeWaitsForAJobAndWhatIsGivenBackIsThereAsItWas) {
  const auto waiting = take(1);
  ask(put(1))->get();
  const ShardAnswer got = waiting->value();
  ASSERT_EQ(got.answers.size(), 1u);
  EXPECT_EQ(got.answers[0].reply, "RESERVED 259 1\r\nx\r\n");
  EXPECT_EQ(got.answers[0].taken.length, 60s);
  EXPECT_EQ(ask({.kind = Kind::all})->value().all.counts.reserved, 1u);
  ask({.kind = Kind::give_back, .leases = {got.answers[0].taken.token}})->get();
  EXPECT_EQ(take(2)->value().answers.size(), 1u);
}

TEST_F(ShardJobsTest, AnEndOfATakeEndsItThoughItComesBeforeIt) {
  const auto first = take(1);
  EXPECT_EQ(ask({.kind = Kind::end_take, .number = 1})->get().status, 200);
  EXPECT_TRUE(first->value().answers.empty());
  EXPECT_EQ(ask({.kind = Kind::end_take, .number = 2})->get().status, 200);
  EXPECT_TRUE(take(2)->value().answers.empty());
  const auto other = take(3);
  ask(put(1))->get();
  EXPECT_EQ(other->value().answers.size(), 1u) << "no other is ended";
}

TEST_F(ShardJobsTest, EndsOfAllTakesThatANodeMaySendComeBeforeThem) {
  constexpr std::uint64_t kTakes = 2'048;  // half of the limit of calls from one node to another
  for (std::uint64_t number = 1; number <= kTakes; ++number) {
    ask({.kind = Kind::end_take, .number = number})->get();
  }
  const auto first = take(1);
  const auto last = take(kTakes);
  ask(put(1))->get();
  EXPECT_TRUE(first->value().answers.empty());
  EXPECT_TRUE(last->value().answers.empty());
}

TEST_F(ShardJobsTest, ALeaseThatNobodyIsToldOfIsGivenBack) {
  ask(put(1))->get();
  const auto await_ready = [this] {
    while (ask({.kind = Kind::all})->value().all.counts.ready != 1) {
    }
  };
  is_taken_ = false;
  take(1)->get();
  is_taken_ = true;
  await_ready();
  is_taken_ = false;
  ShardAsk reserve_job;
  reserve_job.calls.push_back({.command = {.verb = Verb::reserve_job, .id = 259}});
  ask(reserve_job)->get();
  is_taken_ = true;
  await_ready();
}

TEST_F(ShardJobsTest, WhatMayNotBeDurableIsNotAnswered) {
  store_.fail_write(2, WriteFault::applied);
  EXPECT_EQ(ask(put(1))->get().status, 200);
  const auto waiting = take(1);
  waiting->get();
  const auto second = take(2);
  EXPECT_EQ(ask(put(1))->get().status, 503);
  EXPECT_EQ(second->get().status, 503);
}

TEST_F(ShardJobsTest, WhatIsNoQuestionIsRefused) { EXPECT_EQ(send("x")->get().status, 400); }

}  // namespace
}  // namespace detent::server
