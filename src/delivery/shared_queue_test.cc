// One queue with tasks for several hosts. The engine and the deliverer are real; the test answers
// the calls.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "delivery/deliverer.h"
#include "delivery/engine_webhooks.h"
#include "engine/testing/engine_fixture.h"
#include "net/testing/fake_caller.h"

namespace detent {
namespace {

/// A queue that leases four tasks at a time.
class SharedQueueTest : public EngineFixture {
 public:
  SharedQueueTest() {
    EXPECT_TRUE(engine_->set_queue("q", {.concurrency = 4}));
    for (int i = 0; i < 200; ++i) schedule_to("http://dead.test/");
    for (int i = 0; i < kWell; ++i) schedule_to("http://well.test/");
    thread_ = std::make_unique<EngineThread>(
        OpenEngine{.store = nullptr, .engine = std::move(engine_)}, clock_);
    deliverer_ = std::make_unique<Deliverer>(
        std::make_shared<EngineWebhooks>(*thread_), std::make_unique<FakeCaller>(calls_), clock_,
        WebhookKeys{WebhookKey::parse("whsec_" + std::string(32, 'A')).value()});
  }
  ~SharedQueueTest() override {
    deliverer_.reset();
    thread_->stop();
  }

 protected:
  void schedule_to(const std::string& url) {
    schedule({.queue = "q", .payload = {}, .webhook = url});
  }
  /// Answers the calls to the healthy host, until no more calls come.
  void answer_well() {
    for (;;) {
      clock_.await_waiters(2);
      if (calls_.empty()) return;
      FakeCall call = calls_.next();
      if (call.url.authority == "well.test") {
        ++delivered_;
        call.answer(200);
      } else {
        dead_.push_back(std::move(call));
      }
    }
  }
  /// Moves the clock by ten seconds, and lets the call to the other host time out.
  void time_out() {
    clock_.advance(10s);
    for (FakeCall& call : std::exchange(dead_, {})) {
      call.done(net::CallFailure{.step = net::CallStep::connect,
                                 .kind = net::CallFailure::Kind::timed_out,
                                 .message = "connect: timed out"});
    }
  }

  static constexpr int kWell = 50;
  Calls calls_;
  std::vector<FakeCall> dead_;
  int delivered_ = 0;
  std::unique_ptr<EngineThread> thread_;
  std::unique_ptr<Deliverer> deliverer_;
};

TEST_F(SharedQueueTest, ADeadHostDoesNotKeepTheQueueFromOthers) {
  for (int round = 0; round < 6 && delivered_ < kWell; ++round) {
    answer_well();
    time_out();
  }
  EXPECT_EQ(delivered_, kWell);
}

}  // namespace
}  // namespace detent
