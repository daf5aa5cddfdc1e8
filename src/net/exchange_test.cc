#include "net/exchange.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace detent::net {
namespace {

/// A connection that only writes down what it is told to send: a status, or 0 for a dropped one.
class Recorder final : public AnswerTarget {
 public:
  void post_answer(std::optional<HttpResponse> response) override {
    posted.push_back(response ? response->status : 0);
  }
  std::vector<int> posted;
};

struct ExchangeTest : testing::Test {
  Recorder recorder;
  std::shared_ptr<ExchangeLink> link = std::make_shared<ExchangeLink>(recorder);
};

TEST_F(ExchangeTest, OnlyTheFirstAnswerCounts) {
  const Responder responder = ExchangeLink::open(link);
  EXPECT_TRUE(link->is_waiting());
  responder.send({.status = 200});
  responder.send({.status = 201});
  EXPECT_FALSE(link->is_waiting());
  EXPECT_EQ(recorder.posted, std::vector<int>{200});
}

TEST_F(ExchangeTest, DroppingTheLastCopyIsAnAnswer) {
  std::optional<Responder> first = ExchangeLink::open(link);
  std::optional<Responder> second = first;
  first.reset();
  EXPECT_TRUE(recorder.posted.empty());
  second.reset();
  EXPECT_EQ(recorder.posted, std::vector<int>{0});
}

TEST_F(ExchangeTest, AnOldResponderCannotAnswerTheNextRequest) {
  const Responder old = ExchangeLink::open(link);
  old.send({.status = 200});
  const Responder current = ExchangeLink::open(link);
  old.send({.status = 500});
  old.on_gone([] { FAIL() << "its request was answered"; });
  link->close();
  EXPECT_EQ(recorder.posted, std::vector<int>{200});
}

TEST_F(ExchangeTest, GoneRunsOnceWhenTheConnectionCloses) {
  int gone = 0;
  const Responder responder = ExchangeLink::open(link);
  responder.on_gone([&gone] { ++gone; });
  link->close();
  link->close();
  EXPECT_EQ(gone, 1);
  responder.send({.status = 200});
  EXPECT_TRUE(recorder.posted.empty());
}

TEST_F(ExchangeTest, GoneRunsAtOnceWhenItIsTooLate) {
  int gone = 0;
  const Responder responder = ExchangeLink::open(link);
  link->close();
  responder.on_gone([&gone] { ++gone; });
  EXPECT_EQ(gone, 1);
}

TEST_F(ExchangeTest, GoneNeverRunsAfterAnAnswer) {
  const Responder responder = ExchangeLink::open(link);
  responder.on_gone([] { FAIL() << "answered before"; });
  responder.send({.status = 200});
  responder.on_gone([] { FAIL() << "answered before"; });
  link->close();
  responder.on_gone([] { FAIL() << "answered before"; });
}

TEST_F(ExchangeTest, TheSecondGoneReplacesTheFirst) {
  int gone = 0;
  const Responder responder = ExchangeLink::open(link);
  responder.on_gone([] { FAIL() << "replaced"; });
  responder.on_gone([&gone] { ++gone; });
  link->close();
  EXPECT_EQ(gone, 1);
}

TEST_F(ExchangeTest, GoneMayHoldItsOwnResponder) {
  std::optional<Responder> responder = ExchangeLink::open(link);
  responder->on_gone([copy = *responder] { copy.send({.status = 200}); });
  responder.reset();
  link->close();  // runs the callback and lets go of the last copy; a leak would show under ASan
  EXPECT_TRUE(recorder.posted.empty());
}

// Of an answer and the client's going away exactly one wins, whichever is first.
TEST_F(ExchangeTest, AnswerAndGoneExcludeEachOther) {
  for (int round = 0; round < 500; ++round) {
    Recorder target;
    const auto raced = std::make_shared<ExchangeLink>(target);
    int gone = 0;
    std::optional<Responder> responder = ExchangeLink::open(raced);
    responder->on_gone([&gone] { ++gone; });
    std::thread answering([moved = *std::move(responder)] { moved.send({.status = 200}); });
    raced->close();
    answering.join();
    EXPECT_EQ(static_cast<std::size_t>(gone) + target.posted.size(), 1u);
  }
}

}  // namespace
}  // namespace detent::net
