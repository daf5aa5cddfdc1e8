// The thread of Alerts, between a real engine and a fake caller, on a clock that the test moves.
#include "server/operate/alerts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "net/testing/fake_caller.h"
#include "store/testing/memory_store.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

std::string header(const FakeCall& call, std::string_view name) {
  return std::string(call.request.header(name));
}
/// "firing" or "recovered".
std::string state(const FakeCall& call) {
  const std::string& body = call.request.body;
  const std::size_t at = body.find("alert.") + 6;
  return body.substr(at, body.find('"', at) - at);
}

class AlertsTest : public ::testing::Test {
 public:
  ~AlertsTest() override {
    alerts_.reset();
    engine_.stop();
  }

 protected:
  void watch(Thresholds thresholds) {
    alerts_ = std::make_unique<Alerts>(
        thresholds,
        Alerts::Way{.url = net::parse_http_url("http://a.test/alerts").value(),
                    .caller = std::make_unique<FakeCaller>(calls_),
                    .keys = {WebhookKey::parse("whsec_" + std::string(32, 'A')).value()}},
        AlertSource{.ask = figures_of(engine_), .is_ours = [this] { return is_ours_.load(); }},
        clock_);
    settle();
  }
  /// Waits until the engine and the alerts have done all their work.
  void settle() { clock_.await_waiters(2); }
  /// Moves time by single seconds, so that the alerts look at each second.
  void pass(int seconds) {
    for (; seconds > 0; --seconds) {
      clock_.advance(1s);
      settle();
    }
  }
  void schedule(int count) {
    ASSERT_TRUE(engine_.post([count](Engine& engine) {
      for (int i = 0; i < count; ++i) EXPECT_TRUE(engine.schedule({.queue = "q"}));
    }));
    pass(1);
  }
  void purge() {
    ASSERT_TRUE(engine_.post([](Engine& engine) { EXPECT_TRUE(engine.purge("q", 1'000)); }));
    pass(1);
  }
  std::size_t begun() {
    const MutexLock lock(calls_.mutex);
    return calls_.begun.size();
  }
  /// The call that waits for its answer. There must be exactly one.
  FakeCall take() {
    const MutexLock lock(calls_.mutex);
    EXPECT_EQ(calls_.begun.size(), 1u);
    if (calls_.begun.empty()) return {};
    FakeCall call = std::move(calls_.begun.front());
    calls_.begun.pop_front();
    return call;
  }
  void answer(FakeCall& call, int status) {
    if (call.done) call.done(net::HttpResponse{.status = status});
    settle();
  }

  ManualClock clock_;
  MemoryDisk disk_;
  std::unique_ptr<Store> store_ = MemoryStore::open(disk_).value();
  EngineThread engine_{
      OpenEngine{.store = nullptr, .engine = Engine::open(*store_, clock_, {}).value()}, clock_};
  Calls calls_;
  std::atomic<bool> is_ours_{true};
  std::unique_ptr<Alerts> alerts_;
};

TEST_F(AlertsTest, TellsThatAFigureIsAboveItsThresholdAndThatItHasRecovered) {
  watch({.pending = 2});
  schedule(3);
  FakeCall firing = take();
  EXPECT_EQ(firing.url.authority + firing.url.target, "a.test/alerts");
  EXPECT_EQ(firing.request.method, "POST");
  EXPECT_NE(firing.request.body.find(R"("alert":"pending","unit":"tasks","value":3,)"),
            std::string::npos)
      << firing.request.body;
  EXPECT_EQ(state(firing), "firing");
  answer(firing, 204);
  schedule(5);
  pass(5);
  EXPECT_EQ(begun(), 0u) << "it is told once";
  purge();
  FakeCall recovered = take();
  EXPECT_EQ(state(recovered), "recovered");
  answer(recovered, 200);
  pass(5);
  EXPECT_EQ(begun(), 0u);
  EXPECT_NE(header(recovered, "webhook-id"), header(firing, "webhook-id"));
}

TEST_F(AlertsTest, SignsAsWebhooksAreSigned) {
  watch({.pending = 0});
  schedule(1);
  const FakeCall call = take();
  const std::string id = header(call, "webhook-id");
  const auto now = std::chrono::floor<std::chrono::seconds>(clock_.wall_now());
  EXPECT_EQ(header(call, "webhook-timestamp"), std::to_string(now.time_since_epoch().count()));
  EXPECT_EQ(header(call, "webhook-signature"),
            sign_webhook({WebhookKey::parse("whsec_" + std::string(32, 'A')).value()},
                         {.id = id, .sent = now, .body = call.request.body}));
}

TEST_F(AlertsTest, SendsAnAlertAgainAfterGrowingDelays) {
  watch({.pending = 0});
  schedule(1);
  FakeCall call = take();
  const std::string id = header(call, "webhook-id");
  answer(call, 500);
  for (const int wait : {1, 2, 4}) {
    pass(wait - 1);
    EXPECT_EQ(begun(), 0u) << wait;
    pass(1);
    call = take();
    EXPECT_EQ(header(call, "webhook-id"), id);
    if (call.done) call.done(net::CallFailure{.message = "connect: Connection refused"});
    settle();
  }
  pass(8);
  call = take();
  answer(call, 200);
  pass(60);
  EXPECT_EQ(begun(), 0u);
}

TEST_F(AlertsTest, ANewAlertReplacesAWaitingAlertOfTheSameFigure) {
  watch({.pending = 0});
  schedule(1);
  FakeCall call = take();
  purge();
  schedule(1);
  purge();
  answer(call, 503);
  pass(1);
  call = take();
  EXPECT_EQ(state(call), "recovered") << "the last word";
  answer(call, 200);
  pass(60);
  EXPECT_EQ(begun(), 0u);
}

TEST_F(AlertsTest, AServerThatTakesOverSendsAgainWhatFires) {
  is_ours_ = false;
  watch({.pending = 0});
  schedule(1);
  pass(5);
  EXPECT_EQ(begun(), 0u) << "another node sends it";
  is_ours_ = true;
  pass(2);
  FakeCall call = take();
  EXPECT_EQ(state(call), "firing");
  answer(call, 200);
  is_ours_ = false;
  pass(1);
  purge();
  pass(5);
  is_ours_ = true;
  pass(5);
  EXPECT_EQ(begun(), 0u) << "the other node has told that it is over";
}

TEST_F(AlertsTest, ARunningCallIsCutOffAtTheEnd) {
  watch({.pending = 0});
  schedule(1);
  alerts_.reset();
  FakeCall call = take();
  if (call.done) call.done(net::HttpResponse{.status = 200});  // too late, and ignored
}

TEST_F(AlertsTest, IsNotThereWithoutAThresholdAndRefusesAUrlAlone) {
  EXPECT_EQ(Alerts::start({}, AlertSource{figures_of(engine_)}, clock_).value(), nullptr);
  EXPECT_EQ(Alerts::start({.url = "http://a.test"}, AlertSource{figures_of(engine_)}, clock_)
                .error()
                .code,
            ErrorCode::invalid_argument);
  const Thresholds dead{.dead = 1};
  for (const char* url : {"a.test", "ftp://a.test", "http://u:p@a.test/"}) {
    EXPECT_EQ(
        Alerts::start({.thresholds = dead, .url = url}, AlertSource{figures_of(engine_)}, clock_)
            .error()
            .code,
        ErrorCode::invalid_argument)
        << url;
  }
  EXPECT_FALSE(Alerts::start({.thresholds = dead, .url = "http://a.test/", .allow = "x"},
                             {figures_of(engine_)}, clock_));
  EXPECT_FALSE(Alerts::start({.thresholds = dead, .url = "http://a.test/", .keys_file = "/no/file"},
                             {figures_of(engine_)}, clock_));
}

TEST_F(AlertsTest, WithoutAUrlAlertsAreOnlyLogged) {
  const auto alerts =
      Alerts::start({.thresholds = {.pending = 0}}, AlertSource{figures_of(engine_)}, clock_)
          .value();
  ASSERT_NE(alerts, nullptr);
  settle();
  schedule(1);
  purge();
}

}  // namespace
}  // namespace detent::server
