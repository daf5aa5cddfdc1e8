// The order of the calls to hosts, with times that the test sets.
#include "delivery/host_lines.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/test_seed.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime kStart{std::chrono::hours{1}};

HostCall to(const std::string& host, std::uint64_t id = 1) {
  HostCall call;
  call.delivery.leased.lease.number = id;
  call.url = net::parse_http_url("http://" + host + "/").value();
  return call;
}

class HostLinesTest : public ::testing::Test {
 protected:
  explicit HostLinesTest(HostLimits limits = {.first_calls = 4, .line_per_call = 8})
      : lines_(limits, 1) {}

  /// Returns whether the delivery waits in the line of its host.
  bool admit(const std::string& host, std::uint64_t id = 1) {
    HostCall call = to(host, id);
    return !lines_.admit(call, now_);
  }
  /// Begins all calls that may begin, and returns their hosts.
  std::vector<std::string> begin_all() {
    std::vector<std::string> hosts;
    while (const auto call = lines_.next(now_)) hosts.push_back(call->url.authority);
    return hosts;
  }
  void finish(const std::string& host, HostHealth health = HostHealth::unknown) {
    lines_.finish(host, health, now_ - 100ms, now_);
  }
  /// Returns how many calls to a host may run at the same time, if many wait. Leaves them running.
  std::size_t calls_of(const std::string& host) {
    for (int i = 0; i < 32; ++i) admit(host);
    return begin_all().size();
  }

  HostLines lines_;
  MonotonicTime now_ = kStart;
};

TEST_F(HostLinesTest, CallsImmediatelyWhileCallsFinishInTime) {
  EXPECT_TRUE(admit("a", 7));
  EXPECT_EQ(lines_.waiting(), 1u);
  const auto call = lines_.next(now_);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->delivery.leased.lease.number, 7u);
  EXPECT_EQ(lines_.waiting(), 0u);
  EXPECT_EQ(lines_.calls(), 1u);
  finish("a");
  EXPECT_EQ(lines_.calls(), 0u);
}

TEST_F(HostLinesTest, KeepsTheOrderOfAHost) {
  for (std::uint64_t id = 1; id <= 4; ++id) admit("a", id);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    EXPECT_EQ(lines_.next(now_)->delivery.leased.lease.number, id);
  }
}

TEST_F(HostLinesTest, TakesHostsInTurn) {
  for (int i = 0; i < 3; ++i) admit("a");
  admit("b");
  admit("c");
  EXPECT_EQ(begin_all(), (std::vector<std::string>{"a", "b", "c", "a", "a"}));
}

TEST_F(HostLinesTest, AFullHostDelaysNoOther) {
  EXPECT_EQ(calls_of("slow"), 4u);
  admit("well");
  EXPECT_EQ(begin_all(), std::vector<std::string>{"well"});
}

TEST_F(HostLinesTest, DistinguishesPorts) {
  EXPECT_EQ(calls_of("a:8080"), 4u);
  EXPECT_EQ(calls_of("a:8081"), 4u);
}

TEST_F(HostLinesTest, AHostGetsMoreCallsAsTheyGoWellUpToTheMost) {
  admit("a");
  for (int i = 0; i < 5; ++i) {
    admit("a");
    begin_all();
  }
  for (int i = 0; i < 4; ++i) finish("a", HostHealth::well);
  begin_all();
  for (int i = 0; i < 40; ++i) {
    admit("a");
    begin_all();
    finish("a", HostHealth::well);
  }
  const std::size_t under_way = lines_.calls();
  EXPECT_EQ(under_way + calls_of("a"), 16u);
}

TEST_F(HostLinesTest, AHostThatStrugglesGetsOneCallAtATime) {
  EXPECT_EQ(calls_of("a"), 4u);
  for (int i = 0; i < 4; ++i) finish("a", HostHealth::struggling);
  EXPECT_EQ(begin_all().size(), 1u);
  finish("a", HostHealth::struggling);
  EXPECT_EQ(begin_all().size(), 1u);
  finish("a", HostHealth::well);
  EXPECT_EQ(begin_all().size(), 2u);
}

TEST_F(HostLinesTest, AnAnswerThatIsNotAboutTheHostChangesNothing) {
  EXPECT_EQ(calls_of("a"), 4u);
  for (int i = 0; i < 4; ++i) finish("a", HostHealth::unknown);
  EXPECT_EQ(begin_all().size(), 4u);
}

TEST_F(HostLinesTest, GivesBackWithGrowingDelaysWhenTheLineIsFull) {
  calls_of("a");  // 4 are called, 28 wait
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(admit("a"));
  std::chrono::milliseconds before{0};
  for (int i = 0; i < 1'000; ++i) {
    HostCall call = to("a", 99);
    const auto delay = lines_.admit(call, now_);
    ASSERT_TRUE(delay);
    EXPECT_EQ(call.delivery.leased.lease.number, 99u) << "the delivery must be unchanged";
    EXPECT_GE(*delay, 1s);
    EXPECT_GE(*delay, before);
    before = *delay;
  }
  // At most 100 per second, so 10 ms for each.
  EXPECT_GE(before, 10s);
  EXPECT_LE(before, 11s);
  EXPECT_EQ(lines_.waiting(), 32u);
}

TEST_F(HostLinesTest, SpreadsALongBacklogWithinTheLongestDelay) {
  calls_of("a");
  for (int i = 0; i < 40; ++i) admit("a");
  std::set<std::chrono::milliseconds> delays;
  for (int i = 0; i < 60'000; ++i) {
    HostCall call = to("a");
    const auto delay = lines_.admit(call, now_).value();
    EXPECT_LE(delay, 300s);
    if (i >= 40'000) {
      EXPECT_GE(delay, 150s);
      delays.insert(delay);
    }
  }
  EXPECT_GT(delays.size(), 5'000u);
}

TEST_F(HostLinesTest, AHostThatIsDownHasALineOfOne) {
  calls_of("a");
  for (int i = 0; i < 4; ++i) finish("a", HostHealth::struggling);
  lines_.take_all();
  EXPECT_TRUE(admit("a"));
  EXPECT_EQ(begin_all().size(), 1u);
  EXPECT_TRUE(admit("a"));
  EXPECT_FALSE(admit("a"));
  finish("a", HostHealth::well);
  EXPECT_EQ(begin_all().size(), 1u);
  for (int i = 0; i < 16; ++i)
    EXPECT_TRUE(admit("a")) << i << ": the line must have its full length";
}

TEST_F(HostLinesTest, ALongerBacklogOfAHostThatIsDownComesBackLessOften) {
  calls_of("a");
  for (int i = 0; i < 4; ++i) finish("a", HostHealth::struggling);
  const auto call_once_a_minute = [this](int minutes) {
    for (int i = 0; i < minutes; ++i) {
      now_ += 1min;
      lines_.take_overdue(now_);
      admit("a");
      ASSERT_EQ(begin_all().size(), 1u);
      finish("a", HostHealth::struggling);
    }
  };
  const auto longest = [this] {
    std::chrono::milliseconds most{0};
    for (int i = 0; i < 40'000; ++i) {
      HostCall call = to("a");
      most = std::max(most, lines_.admit(call, now_).value_or(0ms));
    }
    return most;
  };
  EXPECT_LE(longest(), 300s);
  call_once_a_minute(60);
  const auto after_an_hour = longest();
  EXPECT_GT(after_an_hour, 25min);
  EXPECT_LE(after_an_hour, 30min);
  call_once_a_minute(600);
  const auto after_many = longest();
  EXPECT_GT(after_many, 55min);
  EXPECT_LE(after_many, 60min);
  lines_.take_overdue(now_ + 1min);
  admit("a");
  begin_all();
  finish("a", HostHealth::well);
  EXPECT_LE(longest(), 300s);
}

TEST_F(HostLinesTest, GivesBackCallsThatHaveWaitedTooLong) {
  calls_of("a");
  now_ += 10s;
  admit("b");
  now_ += 19'999ms;
  EXPECT_TRUE(lines_.take_overdue(now_).empty());
  EXPECT_EQ(begin_all(), std::vector<std::string>{"b"});
  now_ += 1ms;
  const auto overdue = lines_.take_overdue(now_);
  EXPECT_EQ(overdue.size(), 28u);
  for (const auto& returned : overdue) {
    EXPECT_EQ(returned.call.url.authority, "a");
    EXPECT_GE(returned.delay, 1s);
  }
  EXPECT_EQ(lines_.waiting(), 0u);
  EXPECT_TRUE(begin_all().empty());
}

TEST_F(HostLinesTest, WakesForTheOldestWaitingCall) {
  EXPECT_EQ(lines_.next_wakeup(now_), std::nullopt);
  calls_of("a");
  EXPECT_EQ(lines_.next_wakeup(now_), now_ + 30s);
}

TEST_F(HostLinesTest, GivesAllBackForAStop) {
  calls_of("a");
  calls_of("b");
  EXPECT_EQ(lines_.take_all().size(), 56u);
  EXPECT_EQ(lines_.waiting(), 0u);
  EXPECT_EQ(lines_.calls(), 8u);
}

class HostLinesRate : public HostLinesTest {
 protected:
  HostLinesRate()
      : HostLinesTest({.first_calls = 1'000,
                       .max_calls = 1'000,
                       .calls_per_second = 10,
                       .line_per_call = 100}) {}
};

TEST_F(HostLinesRate, RespectsItsRate) {
  for (int i = 0; i < 100; ++i) admit("a");
  EXPECT_EQ(begin_all().size(), 10u);
  for (int i = 0; i < 20; ++i) {
    const auto wakeup = lines_.next_wakeup(now_);
    ASSERT_TRUE(wakeup);
    EXPECT_GT(*wakeup, now_);
    EXPECT_LE(*wakeup, now_ + 101ms);
    now_ = *wakeup;
    EXPECT_EQ(begin_all().size(), 1u) << i;
  }
  now_ += 1h;
  for (auto& [call, delay] : lines_.take_overdue(now_)) EXPECT_GE(delay, 1s);
}

class HostLinesWhole : public HostLinesTest {
 protected:
  HostLinesWhole() : HostLinesTest({.max_all_calls = 6, .all_lines = 5}) {}
};

TEST_F(HostLinesWhole, LimitsAllHostsTogether) {
  for (const char* host : {"a", "b", "c"}) {
    for (int i = 0; i < 2; ++i) admit(host);
    begin_all();
  }
  EXPECT_EQ(lines_.room(), 0u);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(admit("d" + std::to_string(i)));
  EXPECT_FALSE(admit("e"));
  EXPECT_TRUE(begin_all().empty());
  finish("a");
  EXPECT_EQ(begin_all(), std::vector<std::string>{"d0"});
}

/// After any sequence of events, the limits hold and each delivery exists exactly once.
TEST(HostLinesModel, KeepsItsBoundsWhateverHappens) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  const HostLimits limits{.first_calls = 2,
                          .max_calls = 5,
                          .max_all_calls = 12,
                          .calls_per_second = 20,
                          .line_per_call = 2,
                          .all_lines = 20};
  HostLines lines(limits, rng.next());
  MonotonicTime now = kStart;
  std::set<std::uint64_t> waiting;
  std::map<std::string, std::map<std::uint64_t, MonotonicTime>> called;
  std::uint64_t last = 0;
  for (int step = 0; step < 20'000; ++step) {
    now += std::chrono::milliseconds{rng.below(200)};
    const std::string host(1, static_cast<char>('a' + rng.below(8)));
    switch (rng.below(4)) {
      case 0:
      case 1: {
        HostCall call = to(host, ++last);
        if (!lines.admit(call, now)) waiting.insert(last);
        break;
      }
      case 2:
        if (auto& calls = called[host]; !calls.empty()) {
          const auto health = static_cast<HostHealth>(rng.below(3));
          lines.finish(host, health, calls.begin()->second, now);
          calls.erase(calls.begin());
        }
        break;
      default:
        for (const auto& overdue : lines.take_overdue(now)) {
          EXPECT_EQ(waiting.erase(overdue.call.delivery.leased.lease.number), 1u);
        }
    }
    while (const auto call = lines.next(now)) {
      const std::uint64_t id = call->delivery.leased.lease.number;
      EXPECT_EQ(waiting.erase(id), 1u);
      called[call->url.authority][id] = now;
    }
    std::size_t calls = 0;
    for (const auto& [name, of_host] : called) {
      EXPECT_LE(of_host.size(), limits.max_calls);
      calls += of_host.size();
    }
    ASSERT_EQ(lines.calls(), calls);
    ASSERT_LE(calls, limits.max_all_calls);
    ASSERT_EQ(lines.waiting(), waiting.size());
    ASSERT_LE(waiting.size(), limits.all_lines);
  }
  EXPECT_GT(last, 1'000u);
}

}  // namespace
}  // namespace detent
