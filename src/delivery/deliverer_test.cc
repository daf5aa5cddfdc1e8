// The deliverer with a fake source and a fake caller, on a clock that the test moves.
#include "delivery/deliverer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "net/testing/fake_caller.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

/// Hands out the deliveries of the test, and records how they ended. Thread-safe.
class FakeSource final : public WebhookSource {
 public:
  struct Ended {
    std::uint64_t lease = 0;
    Verdict verdict;
  };

  void take(std::size_t max, std::vector<std::string> /*held*/, Taken taken) override {
    std::vector<Delivery> given;
    {
      const MutexLock lock(mutex_);
      asked_.push_back(max);
      if (due_.empty() && !is_closed_) {
        waiting_ = std::move(taken);
        changed_.notify_all();
        return;
      }
      given = give(max);
      changed_.notify_all();
    }
    taken(std::move(given));
  }
  void end(LeaseToken lease, Verdict verdict) override {
    const MutexLock lock(mutex_);
    ended_.push_back({lease.number, std::move(verdict)});
    changed_.notify_all();
  }

  /// Makes these deliveries due.
  void add(std::vector<Delivery> due) {
    Taken taken;
    std::vector<Delivery> given;
    {
      const MutexLock lock(mutex_);
      std::ranges::move(due, std::back_inserter(due_));
      if (!waiting_) return;
      taken = std::move(waiting_);
      given = give(asked_.back());
    }
    taken(std::move(given));
  }
  /// Answers every later request with no deliveries immediately, as a source that is stopping.
  void close() {
    Taken taken;
    {
      const MutexLock lock(mutex_);
      is_closed_ = true;
      taken = std::move(waiting_);
    }
    if (taken) taken({});
  }
  Taken take_waiting() {
    const MutexLock lock(mutex_);
    return std::move(waiting_);
  }
  /// Waits until `count` deliveries have ended.
  std::vector<Ended> await_ended(std::size_t count) {
    const MutexLock lock(mutex_);
    while (ended_.size() < count) changed_.wait(mutex_);
    return ended_;
  }
  std::vector<std::size_t> await_asked(std::size_t count) {
    const MutexLock lock(mutex_);
    while (asked_.size() < count) changed_.wait(mutex_);
    return asked_;
  }
  std::size_t asked() const {
    const MutexLock lock(mutex_);
    return asked_.size();
  }

 private:
  std::vector<Delivery> give(std::size_t max) DETENT_REQUIRES(mutex_) {
    std::vector<Delivery> given;
    for (; !due_.empty() && given.size() < max; due_.pop_front()) {
      given.push_back(std::move(due_.front()));
    }
    return given;
  }

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Delivery> due_ DETENT_GUARDED_BY(mutex_);
  Taken waiting_ DETENT_GUARDED_BY(mutex_);
  std::vector<std::size_t> asked_ DETENT_GUARDED_BY(mutex_);
  std::vector<Ended> ended_ DETENT_GUARDED_BY(mutex_);
  bool is_closed_ DETENT_GUARDED_BY(mutex_) = false;
};

class DelivererTest : public ::testing::Test {
 public:
  ~DelivererTest() override { source_.close(); }

 protected:
  static Delivery due(std::uint64_t lease, std::string url = "http://a.test/hook") {
    Delivery delivery;
    delivery.leased.lease.number = lease;
    delivery.leased.task.id = {lease * 256};
    delivery.leased.task.queue = "q";
    delivery.url = std::move(url);
    return delivery;
  }
  std::vector<Delivery> many(std::uint64_t first, std::uint64_t count, const std::string& host) {
    std::vector<Delivery> all;
    for (std::uint64_t i = 0; i < count; ++i) {
      all.push_back(due(first + i, "http://" + host + "/"));
    }
    return all;
  }
  static WebhookKeys own_keys() { return {WebhookKey::parse(kOwnKey).value()}; }

  static inline const std::string kOwnKey = "whsec_" + std::string(32, 'A');
  ManualClock clock_;
  FakeSource source_;
  Calls calls_;
  Deliverer deliverer_{std::shared_ptr<WebhookSource>(std::shared_ptr<void>(), &source_),
                       std::make_unique<FakeCaller>(calls_),
                       clock_,
                       own_keys(),
                       {.limits = {.first_calls = 2, .line_per_call = 1}}};
};

TEST_F(DelivererTest, CompletesAnAcceptedTask) {
  source_.add({due(7)});
  FakeCall call = calls_.next();
  EXPECT_EQ(call.url.target, "/hook");
  EXPECT_EQ(call.request.header("webhook-id"), "task_1792");
  EXPECT_EQ(call.request.header("webhook-timestamp"), "1577836800");
  call.answer(200);
  const auto ended = source_.await_ended(1);
  EXPECT_EQ(ended[0].lease, 7u);
  EXPECT_EQ(ended[0].verdict.verb, Verdict::Verb::complete);
  clock_.await_waiters(1);
  const DeliveryStats stats = deliverer_.stats();
  EXPECT_EQ(stats.ended[static_cast<std::size_t>(DeliveryEnd::delivered)], 1u);
  EXPECT_EQ(stats.calls, 0u);
}

TEST_F(DelivererTest, TellsHowEachCallEndedWithoutTheUrlAndTheBody) {
  FakeSource source;
  Calls calls;
  std::vector<std::string> told;  // on the thread of the deliverer; read after it has ended
  Deliverer deliverer(std::shared_ptr<WebhookSource>(std::shared_ptr<void>(), &source),
                      std::make_unique<FakeCaller>(calls), clock_, own_keys(),
                      {.on_called = [&told](const WebhookResult& result) {
                        told.push_back(std::string(result.receiver) + " " +
                                       std::string(to_string(result.end)) + " " + result.cause);
                      }});
  source.add({due(1, "http://a.test:81/hook?key=geheim")});
  calls.next().answer(200);
  source.await_ended(1);
  source.add({due(2, "http://a.test:81/hook?key=geheim")});
  calls.next().answer(500);
  source.await_ended(2);
  source.close();
  deliverer.stop(0ms);
  EXPECT_EQ(told, (std::vector<std::string>{"a.test:81 delivered ", "a.test:81 status HTTP 500"}));
}

TEST_F(DelivererTest, FailsWithTheDelayThatTheReceiverAsksFor) {
  source_.add({due(1)});
  calls_.next().answer(503, {{"retry-after", "77"}});
  const auto ended = source_.await_ended(1);
  EXPECT_EQ(ended[0].verdict.verb, Verdict::Verb::fail);
  EXPECT_EQ(ended[0].verdict.delay, 77s);
}

TEST_F(DelivererTest, BuriesATaskWithoutAUrl) {
  source_.add({due(1, "http://127.1/")});
  const auto ended = source_.await_ended(1);
  EXPECT_EQ(ended[0].verdict.verb, Verdict::Verb::bury);
  EXPECT_EQ(ended[0].verdict.end, DeliveryEnd::not_allowed);
  EXPECT_TRUE(calls_.empty());
}

TEST_F(DelivererTest, BuriesATaskThatNoKeyCanSign) {
  FakeSource source;
  Deliverer without_keys(std::shared_ptr<WebhookSource>(std::shared_ptr<void>(), &source),
                         std::make_unique<FakeCaller>(calls_), clock_, {}, {});
  source.add({due(1)});
  const auto ended = source.await_ended(1);
  EXPECT_EQ(ended[0].verdict.verb, Verdict::Verb::bury);
  EXPECT_EQ(ended[0].verdict.end, DeliveryEnd::not_allowed);
  EXPECT_TRUE(calls_.empty());
  source.close();
}

TEST_F(DelivererTest, SignsWithTheKeysOfTheQueueOrOfTheServer) {
  const std::string queue_key = "whsec_" + std::string(32, 'B');
  source_.add({due(1)});
  EXPECT_EQ(calls_.next().request.header("webhook-signature").size(), 47u);
  Delivery two = due(2);
  two.keys = {queue_key, kOwnKey};
  source_.add({two});
  const FakeCall call = calls_.next();
  const WebhookKeys keys{WebhookKey::parse(queue_key).value(), own_keys().front()};
  const auto sent = std::chrono::floor<std::chrono::seconds>(clock_.wall_now());
  EXPECT_EQ(call.request.header("webhook-signature"),
            sign_webhook(keys, {.id = "task_512", .sent = sent, .body = "null"}));
}

TEST_F(DelivererTest, SignsWithReplacedKeys) {
  source_.add({due(1)});
  const std::string before(calls_.next().request.header("webhook-signature"));
  deliverer_.set_keys({own_keys().front(), WebhookKey::make().value()});
  source_.add({due(1)});
  const std::string after(calls_.next().request.header("webhook-signature"));
  EXPECT_TRUE(after.starts_with(before + " v1,")) << after;
}

TEST_F(DelivererTest, AHostThatDoesNotAnswerDelaysNoOther) {
  source_.add(many(1, 200, "dead.test"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(calls_.next().url.host, "dead.test");
  // Of 200 deliveries, two are called and two wait. The others go back to the engine, for later.
  const auto ended = source_.await_ended(196);
  for (const auto& given_back : ended) {
    EXPECT_EQ(given_back.verdict.verb, Verdict::Verb::release);
    EXPECT_GE(given_back.verdict.delay.value(), 1s);
  }
  for (std::size_t i = 1; i <= 50; ++i) {
    source_.add({due(1'000 + i, "http://well.test/")});
    FakeCall call = calls_.next();
    EXPECT_EQ(call.url.host, "well.test");
    call.answer(204);
    source_.await_ended(196 + i);
  }
}

TEST_F(DelivererTest, GivesBackDeliveriesThatWaitedTooLong) {
  source_.add(many(1, 4, "slow.test"));
  for (int i = 0; i < 2; ++i) calls_.next();
  clock_.await_waiters(1);
  EXPECT_EQ(deliverer_.stats().waiting, 2u);
  clock_.advance(30s);
  EXPECT_EQ(source_.await_ended(2).at(0).verdict.verb, Verdict::Verb::release);
}

TEST_F(DelivererTest, AsksASourceThatAnswersEmptyOnlyFromTimeToTime) {
  source_.close();
  clock_.await_waiters(1);
  const std::size_t asked = source_.asked();
  EXPECT_LE(asked, 2u);
  for (std::size_t i = 1; i <= 3; ++i) {
    clock_.advance(Deliverer::kTakePause);
    source_.await_asked(asked + i);
    clock_.await_waiters(1);
    EXPECT_EQ(source_.asked(), asked + i);
  }
}

TEST_F(DelivererTest, AsksForNoMoreThanItCanCall) {
  EXPECT_EQ(source_.await_asked(1)[0], Deliverer::kMaxTaken);
}

TEST_F(DelivererTest, AStopGivesBackUnfinishedDeliveries) {
  source_.add(many(1, 4, "slow.test"));
  for (int i = 0; i < 2; ++i) calls_.next();
  clock_.await_waiters(1);
  WebhookSource::Taken late = source_.take_waiting();
  deliverer_.stop(0ms);
  for (const auto& ended : source_.await_ended(4)) {
    EXPECT_EQ(ended.verdict.verb, Verdict::Verb::release);
    EXPECT_EQ(ended.verdict.delay, 0ms);
  }
  {
    const MutexLock lock(calls_.mutex);
    EXPECT_TRUE(calls_.is_cut);
  }
  late({due(77)});
  EXPECT_EQ(source_.await_ended(5).at(4).lease, 77u);
}

TEST_F(DelivererTest, AStopLetsCallsEndWithinItsGrace) {
  source_.add({due(1), due(2)});
  FakeCall first = calls_.next();
  FakeCall second = calls_.next();
  std::thread stopping([this] { deliverer_.stop(10s); });
  first.answer(200);
  EXPECT_EQ(source_.await_ended(1)[0].verdict.verb, Verdict::Verb::complete);
  second.answer(200);
  stopping.join();
  EXPECT_EQ(source_.await_ended(2)[1].verdict.verb, Verdict::Verb::complete);
  deliverer_.stop(0ms);
}

TEST_F(DelivererTest, AStopWaitsNoLongerThanItsGrace) {
  source_.add({due(1)});
  const FakeCall call = calls_.next();
  clock_.await_waiters(1);
  std::thread stopping([this] { deliverer_.stop(10s); });
  // The thread may or may not have noticed the stop yet. It wakes at the end of the grace.
  while (deliverer_.stats().ended[static_cast<std::size_t>(DeliveryEnd::given_back)] == 0) {
    clock_.advance(1s);
  }
  stopping.join();
  EXPECT_EQ(source_.await_ended(1)[0].verdict.verb, Verdict::Verb::release);
}

}  // namespace
}  // namespace detent
