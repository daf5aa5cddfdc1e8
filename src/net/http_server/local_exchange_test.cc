#include "net/http_server/local_exchange.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace detent::net {
namespace {

class LocalExchangeTest : public ::testing::Test {
 protected:
  std::shared_ptr<LocalExchange> exchange_ =
      std::make_shared<LocalExchange>([this](std::optional<HttpResponse> answer) {
        answers_.push_back(std::move(answer));
        return goes_on_;
      });
  bool goes_on_ = true;
  std::vector<std::optional<HttpResponse>> answers_;
  int gone_ = 0;

  Responder responder() { return Responder(exchange_); }
};

TEST_F(LocalExchangeTest, TheFirstAnswerCounts) {
  responder().send({.status = 201, .body = "one"});
  responder().send({.status = 500, .body = "two"});
  exchange_.reset();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0]->status, 201);
  EXPECT_EQ(answers_[0]->body, "one");
}

TEST_F(LocalExchangeTest, ADroppedRequestGivesNoValue) {
  exchange_.reset();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_FALSE(answers_[0]);
}

TEST_F(LocalExchangeTest, AbandonRunsOnGoneAndDropsTheAnswer) {
  responder().on_gone([this] { ++gone_; });
  exchange_->abandon();
  EXPECT_EQ(gone_, 1);
  exchange_->abandon();
  responder().send({});
  EXPECT_EQ(gone_, 1);
  responder().on_gone([this] { ++gone_; });
  EXPECT_EQ(gone_, 2) << "a callback that is set later must run immediately";
  exchange_.reset();
  EXPECT_TRUE(answers_.empty());
}

TEST_F(LocalExchangeTest, OnGoneNeverRunsAfterAnAnswer) {
  responder().on_gone([this] { ++gone_; });
  responder().send({});
  responder().on_gone([this] { ++gone_; });
  exchange_->abandon();
  EXPECT_EQ(gone_, 0);
  EXPECT_EQ(answers_.size(), 1u);
}

TEST_F(LocalExchangeTest, AnotherCallbackReplacesTheFirst) {
  responder().on_gone([this] { gone_ += 10; });
  responder().on_gone([this] { ++gone_; });
  exchange_->abandon();
  EXPECT_EQ(gone_, 1);
}

TEST_F(LocalExchangeTest, OfferReturnsWhetherTheAnswerWasDelivered) {
  goes_on_ = false;
  EXPECT_FALSE(responder().offer({})) << "the callback did not deliver it";
  goes_on_ = true;
  EXPECT_FALSE(responder().offer({})) << "the request was answered before";
  EXPECT_TRUE(
      Responder(std::make_shared<LocalExchange>([](const auto&) { return true; })).offer({}));
  const auto abandoned = std::make_shared<LocalExchange>([](const auto&) { return true; });
  abandoned->abandon();
  EXPECT_FALSE(Responder(abandoned).offer({}));
}

TEST_F(LocalExchangeTest, AStreamIsRefused) {
  const ResponseStream stream = responder().stream({.content_type = "text/event-stream"});
  EXPECT_FALSE(stream.send("x"));
  stream.on_gone([this] { ++gone_; });
  EXPECT_EQ(gone_, 1);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0]->status, 501);
}

}  // namespace
}  // namespace detent::net
