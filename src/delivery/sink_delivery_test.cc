// Delivery to sinks by a real engine and deliverer, each on its thread, with a sink that fails in
// every possible way. A test continues when both threads wait for the clock.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "delivery/deliverer.h"
#include "delivery/engine_webhooks.h"
#include "delivery/testing/fake_sink.h"
#include "engine/testing/engine_fixture.h"
#include "net/testing/fake_caller.h"
#include "tracing/testing/kept_spans.h"

namespace detent {
namespace {

const Error kDown{ErrorCode::unavailable, "no broker", ""};
const Error kTooLarge{ErrorCode::too_large, "too\nlarge", ""};
constexpr std::size_t kUnderWay = 64;

class SinkDeliveryTest : public EngineFixture {
 public:
  SinkDeliveryTest() {
    set_sink("q", "a");
    set_sink("other", "b");
  }
  ~SinkDeliveryTest() override {
    deliverer_.reset();
    if (thread_) thread_->stop();
  }

 protected:
  void set_sink(const std::string& queue, const std::string& sink) {
    EXPECT_TRUE(engine_->set_queue(queue, {.backoff = Backoff{.initial = 1s, .max = 1s},
                                           .webhook = QueueWebhook{.url = "sink:" + sink}}));
  }
  TaskId add(const std::string& queue) {
    return schedule({.queue = queue, .payload = {}, .rules = {.max_attempts = 2}});
  }
  void start() {
    thread_ = std::make_unique<EngineThread>(
        OpenEngine{.store = nullptr, .engine = std::move(engine_)}, clock_);
    deliverer_ = std::make_unique<Deliverer>(
        std::make_shared<EngineWebhooks>(*thread_, &tracer_), std::make_unique<FakeCaller>(calls_),
        clock_, WebhookKeys{WebhookKey::parse("whsec_" + std::string(32, 'A')).value()},
        DelivererOptions{
            .sinks = {{"a", a_}, {"b", b_}},
            .sink_limits = {.max_under_way = kUnderWay, .first_pause = 1s, .longest_pause = 8s},
            .on_sink_turn =
                [this](const std::string& name, const Result<void>& state) {
                  turns_.push_back(name + (state ? " up" : " down"));
                },
            .tracer = &tracer_});
    settle();
  }
  void settle() { clock_.await_waiters(2); }
  void pass(std::chrono::milliseconds time) {
    settle();
    clock_.advance(time);
    settle();
  }
  template <class Look>
  auto on_engine(Look look) {
    std::promise<std::invoke_result_t<Look, Engine&>> promise;
    auto answer = promise.get_future();
    EXPECT_TRUE(thread_->post([&](Engine& engine) { promise.set_value(look(engine)); }));
    return answer.get();
  }
  Result<TaskSnapshot> find(TaskId id) {
    return on_engine([id](Engine& engine) { return engine.get(id); });
  }
  std::uint64_t leased(const std::string& queue) {
    return on_engine([&](Engine& engine) { return engine.queue(queue)->stats.leased; });
  }
  void answer(const std::shared_ptr<FakeSink>& sink, const Result<void>& result) {
    sink->next().done(result);
    settle();
  }

  const std::shared_ptr<FakeSink> a_ = std::make_shared<FakeSink>();
  const std::shared_ptr<FakeSink> b_ = std::make_shared<FakeSink>();
  Calls calls_;
  SpanList spans_;
  TaskTracer tracer_{std::make_unique<KeptSpans>(spans_), clock_, 1, 1};
  std::vector<std::string> turns_;  // written by the deliverer's thread, read while it waits
  std::unique_ptr<EngineThread> thread_;
  std::unique_ptr<Deliverer> deliverer_;
};

TEST_F(SinkDeliveryTest, ATaskIsCompletedWhenTheBrokerHasAcknowledgedItAndNotBefore) {
  const TaskId id = add("q");
  start();
  FakeSend send = a_->next();
  EXPECT_EQ(send.message.id, to_string(id));
  pass(30s);
  EXPECT_EQ(find(id)->state, TaskState::leased);
  send.done(ok());
  settle();
  EXPECT_EQ(find(id).error().code, ErrorCode::not_found);
  EXPECT_EQ(deliverer_->stats().sinks.at("a").ended[0], 1u);
  EXPECT_TRUE(turns_.empty());
}

TEST_F(SinkDeliveryTest, AMessageIsTracedFromTheLeaseToItsEnd) {
  const std::string trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  schedule({.queue = "q", .payload = {}, .headers = {{"traceparent", trace}}});
  add("q");  // which has no trace
  start();
  answer(a_, kTooLarge);
  answer(a_, ok());
  const std::vector<Span> spans = spans_.take();
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[0].step, SpanStep::wait);
  EXPECT_EQ(spans[1].step, SpanStep::lease);
  EXPECT_EQ(spans[2].step, SpanStep::deliver);
  EXPECT_EQ(spans[2].receiver, "sink:a");
  EXPECT_EQ(spans[2].error, "refused");
  EXPECT_EQ(spans[2].parent, spans[1].id);
  EXPECT_EQ(spans[3].step, SpanStep::fail);
  EXPECT_EQ(spans[3].parent, spans[1].id);
}

TEST_F(SinkDeliveryTest, ABrokerThatIsDownCostsNoAttempts) {
  const TaskId id = add("q");
  start();
  for (int i = 0; i < 20; ++i) {
    answer(a_, kDown);
    EXPECT_EQ(find(id)->state, TaskState::ready);
    EXPECT_EQ(a_->waiting(), 0u);
    pass(8s);
  }
  const FakeSend last = a_->next();
  EXPECT_EQ(last.message.fields[3].second, "1");
  EXPECT_EQ(turns_, std::vector<std::string>{"a down"});
}

TEST_F(SinkDeliveryTest, NoTaskIsLeasedForABrokerThatIsDownAndAllAreSentLater) {
  std::set<std::string> ids;
  for (int i = 0; i < 300; ++i) ids.insert(to_string(add("q")));
  start();
  std::size_t failed = 0;
  for (; a_->waiting() > 0; ++failed) answer(a_, kDown);
  EXPECT_EQ(failed, kUnderWay);
  EXPECT_EQ(leased("q"), 0u);
  pass(8s);
  while (!ids.empty()) {
    FakeSend send = a_->next();
    ids.erase(send.message.id);
    send.done(ok());
    settle();
  }
  EXPECT_EQ(on_engine([](Engine& engine) { return engine.queue("q")->stats.ready; }), 0u);
  EXPECT_EQ(turns_, (std::vector<std::string>{"a down", "a up"}));
}

TEST_F(SinkDeliveryTest, NoMoreIsLeasedThanCanBeSent) {
  for (int i = 0; i < 300; ++i) add("q");
  start();
  EXPECT_EQ(a_->waiting(), kUnderWay);
  EXPECT_EQ(leased("q"), kUnderWay);
  for (std::size_t i = 0; i < kUnderWay / 2; ++i) answer(a_, ok());
  EXPECT_EQ(leased("q"), kUnderWay / 2 + kUnderWay);
}

TEST_F(SinkDeliveryTest, ASinkThatIsDownOrSilentDelaysNoOtherSinkAndNoWebhook) {
  for (int i = 0; i < 300; ++i) add("q");
  add("other");
  schedule({.queue = "q", .payload = {}, .rules = {.priority = 1}, .webhook = "http://h.test/"});
  start();
  EXPECT_EQ(calls_.next().url.authority, "h.test");
  answer(b_, ok());
  answer(a_, kDown);
  EXPECT_TRUE(thread_->post([](Engine& engine) {
    EXPECT_TRUE(engine.schedule({.queue = "other"}));
    EXPECT_TRUE(engine.schedule({.queue = "free", .webhook = "http://h.test/"}));
  }));
  settle();
  EXPECT_EQ(b_->waiting(), 1u);
  EXPECT_EQ(calls_.next().url.authority, "h.test");
}

TEST_F(SinkDeliveryTest, ARefusedMessageFailsItsAttemptsAndIsDeadAfterTheLast) {
  const TaskId id = add("q");
  const TaskId other = add("q");
  start();
  answer(a_, kTooLarge);
  answer(a_, ok());
  EXPECT_FALSE(find(other));
  EXPECT_EQ(find(id)->state, TaskState::scheduled);
  pass(2s);
  answer(a_, kTooLarge);
  const TaskSnapshot dead = find(id).value();
  EXPECT_EQ(dead.state, TaskState::dead);
  EXPECT_EQ(dead.task.history.back().error, "too?large");
  EXPECT_EQ(deliverer_->stats().sinks.at("a").ended[1], 2u);
}

TEST_F(SinkDeliveryTest, AnUnansweredMessageIsSentAgainAndALateAnswerIsIgnored) {
  const TaskId id = add("q");
  start();
  FakeSend silent = a_->next();
  pass(59s);
  EXPECT_EQ(find(id)->state, TaskState::leased);
  pass(1s);
  EXPECT_EQ(find(id)->state, TaskState::ready);
  pass(1s);
  FakeSend again = a_->next();
  EXPECT_EQ(again.message.fields[3].second, "1");
  silent.done(ok());
  settle();
  EXPECT_EQ(find(id)->state, TaskState::leased);
  again.done(ok());
  settle();
  EXPECT_FALSE(find(id));
}

TEST_F(SinkDeliveryTest, AStopLetsAnswersComeWithinItsGrace) {
  const TaskId id = add("q");
  start();
  FakeSend send = a_->next();
  std::thread stopping([this] { deliverer_->stop(10s); });
  send.done(ok());
  stopping.join();
  EXPECT_FALSE(find(id));
}

TEST_F(SinkDeliveryTest, AStopGivesBackUnansweredMessages) {
  const TaskId id = add("q");
  start();
  FakeSend send = a_->next();
  deliverer_->stop(0s);
  // The request that waited at the engine may lease the task once more. It then gives it back, too.
  while (find(id)->state != TaskState::ready) {
  }
  EXPECT_EQ(find(id)->task.attempts, 0u);
  send.done(ok());
  EXPECT_EQ(find(id)->state, TaskState::ready);
}

TEST_F(SinkDeliveryTest, AnUnknownSinkMakesTheTaskDead) {
  set_sink("lost", "nowhere");
  const TaskId id = add("lost");
  start();
  EXPECT_EQ(find(id)->state, TaskState::dead);
}

TEST_F(SinkDeliveryTest, AQueueThatGetsAnotherSinkIsDeliveredThereImmediately) {
  add("q");
  start();
  answer(a_, kDown);
  EXPECT_TRUE(thread_->post([](Engine& engine) {
    EXPECT_TRUE(engine.set_queue("q", {.webhook = QueueWebhook{.url = "sink:b"}}));
  }));
  answer(b_, ok());
  EXPECT_EQ(on_engine([](Engine& engine) { return engine.queue("q")->stats.ready; }), 0u);
}

}  // namespace
}  // namespace detent
