// The parts put together: a task in an engine, delivered to a server over a real connection.
#include "server/operate/webhooks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "engine/testing/engine_fixture.h"
#include "net/testing/http_server_fixture.h"

namespace detent::server {
namespace {

constexpr const char* kKey = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

class WebhooksTest : public EngineFixture {
 protected:
  WebhooksTest() {
    std::filesystem::create_directories(folder_);
    thread_ = std::make_unique<EngineThread>(
        OpenEngine{.store = nullptr, .engine = std::move(engine_)}, system_clock_);
  }
  ~WebhooksTest() override {
    webhooks_.reset();
    thread_->stop();
    std::filesystem::remove_all(folder_);
  }
  Result<void> start(WebhookOptions options) {
    options.data = folder_;
    ASSIGN_OR_RETURN(webhooks_, Webhooks::start(options, *thread_, system_clock_));
    return ok();
  }
  void write_keys(const std::string& text) const { std::ofstream(keys_) << text; }
  void schedule_for(const net::HttpServer& server) {
    const std::string url = "http://127.0.0.1:" + std::to_string(server.port()) + "/";
    EXPECT_TRUE(thread_->post(
        [url](Engine& engine) { EXPECT_TRUE(engine.schedule({.queue = "q", .webhook = url})); }));
  }

  const std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) /
                                        ("detent-webhooks-" + std::to_string(::getpid()));
  const std::filesystem::path keys_ = folder_ / "keys";
  SystemClock system_clock_;
  std::unique_ptr<EngineThread> thread_;
  std::unique_ptr<Webhooks> webhooks_;
};

TEST_F(WebhooksTest, DeliversToAnAddressThatIsAllowed) {
  net::Mailbox<net::HeldRequest> held;
  const auto server = net::start_server(net::HoldingHandler{held});
  ASSERT_TRUE(start({.allow = "127.0.0.0/8"}));
  schedule_for(*server);
  const net::HeldRequest request = held.pop();
  EXPECT_EQ(request.request.method, "POST");
  EXPECT_TRUE(request.request.header("webhook-signature").starts_with("v1,"));
  request.responder.send(net::text("", 204));
}

TEST_F(WebhooksTest, MakesAKeyOfTheServersOwn) {
  ASSERT_TRUE(start({}));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "webhook.key"));
  EXPECT_TRUE(webhooks_->reload_keys());
}

TEST_F(WebhooksTest, ReadsItsKeysAgainAndKeepsThemWhenTheyAreWrong) {
  net::Mailbox<net::HeldRequest> held;
  const auto server = net::start_server(net::HoldingHandler{held});
  write_keys(kKey);
  ASSERT_TRUE(start({.allow = "127.0.0.0/8", .keys = keys_}));
  const auto signatures = [&] {
    schedule_for(*server);
    const net::HeldRequest request = held.pop();
    request.responder.send(net::text("", 204));
    return std::string(request.request.header("webhook-signature")).size();
  };
  constexpr std::size_t kOne = 47;
  EXPECT_EQ(signatures(), kOne);
  write_keys(std::string(kKey) + "\n" + WebhookKey::make()->text());
  EXPECT_TRUE(webhooks_->reload_keys());
  EXPECT_EQ(signatures(), 2 * kOne + 1);
  write_keys("no key");
  EXPECT_FALSE(webhooks_->reload_keys());
  EXPECT_EQ(signatures(), 2 * kOne + 1);
}

TEST_F(WebhooksTest, RefusesWhatItCannotReadAtTheStart) {
  EXPECT_EQ(start({.allow = "everybody"}).error().field, "webhook_allow");
  EXPECT_EQ(start({.keys = folder_ / "none"}).error().code, ErrorCode::unavailable);
  write_keys("no key");
  EXPECT_EQ(start({.keys = keys_}).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace detent::server
