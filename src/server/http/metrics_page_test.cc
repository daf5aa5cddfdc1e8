#include "server/http/metrics_page.h"

#include <gtest/gtest.h>

namespace detent::server {
namespace {

class MetricsPageTest : public ::testing::Test {
 protected:
  /// Whether the page asks the engine.
  bool wait() {
    return page_.wait([this](std::string page) { given_.push_back(std::move(page)); });
  }
  using Given = std::vector<std::string>;

  MetricsPage page_;
  Given given_;
};

TEST_F(MetricsPageTest, TheEngineIsAskedOnceForAllWaitingRequests) {
  EXPECT_TRUE(wait());
  EXPECT_FALSE(wait());
  EXPECT_EQ(given_, Given{});
  page_.note("one");
  EXPECT_EQ(given_, (Given{"one", "one"}));
  EXPECT_TRUE(wait());
  page_.note("two");
  EXPECT_EQ(given_.back(), "two");
}

TEST_F(MetricsPageTest, IfTheEngineDoesNotAnswerThePreviousPageIsSentAfterTwoLooks) {
  EXPECT_TRUE(wait());
  page_.note("before");
  page_.look();
  EXPECT_TRUE(wait());
  page_.look();
  EXPECT_EQ(given_.size(), 1u);
  page_.look();
  EXPECT_EQ(given_, (Given{"before", "before"}));
  EXPECT_FALSE(wait()) << "one question waits already";
  EXPECT_EQ(given_.size(), 3u) << "at once";
  page_.note("after all");
  EXPECT_EQ(given_.size(), 3u);
  EXPECT_TRUE(wait());
  EXPECT_EQ(given_.size(), 3u);
}

TEST_F(MetricsPageTest, TheLastPageStandsForTheEngine) {
  EXPECT_TRUE(wait());
  page_.note_last("last");
  EXPECT_EQ(given_, Given{"last"});
  page_.note("later");
  EXPECT_FALSE(wait());
  EXPECT_EQ(given_, (Given{"last", "last"}));
  EXPECT_EQ(page_.last(), "last");
}

}  // namespace
}  // namespace detent::server
