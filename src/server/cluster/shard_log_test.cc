#include "server/cluster/shard_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <sstream>
#include <string>

#include "base/log/log.h"
#include "base/testing/count_of.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;

constexpr const char* kGone = "write store: server closed the connection unexpectedly";

class ShardLogTest : public ::testing::Test {
 public:
  ShardLogTest() { configure_log({.out = &out_}); }
  ~ShardLogTest() override { configure_log({}); }

 protected:
  /// Lets the time pass, and writes the lines when they are due.
  void pass(std::chrono::milliseconds time) {
    const MonotonicTime until = clock_.now() + time;
    for (auto next = log_.next_line(); next && *next <= until; next = log_.next_line()) {
      clock_.advance(*next - clock_.now());
      log_.write();
    }
    clock_.advance(until - clock_.now());
  }
  int count(const std::string& words) const { return count_of(words, out_.str()); }

  ManualClock clock_;
  std::ostringstream out_;
  int rings_ = 0;
  ShardLog log_{clock_, [this] { ++rings_; }};
};

TEST(ShowShards, ShowsRanges) {
  EXPECT_EQ(show_shards({}), "");
  EXPECT_EQ(show_shards({7}), "7");
  EXPECT_EQ(show_shards({0, 1, 2, 3, 7, 9, 10, 255}), "0-3,7,9,10,255");
}

TEST_F(ShardLogTest, AnOutageOfAllShardsIsOneLine) {
  for (ShardNumber shard = 0; shard < 256; ++shard) {
    log_.failed({shard, 3}, kGone);
    log_.closed({shard, 3}, ShardEnd::failed);
  }
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(rings_, 1);
  EXPECT_EQ(log_.next_line(), clock_.now() + ShardLog::kGatherFailures);
  pass(2s);
  EXPECT_EQ(count("error the store of shards failed; giving up the shards count=256 shards=0-255 "
                  "cause=\"write store: server closed the connection unexpectedly\" "
                  "action=\"check the database; "),
            1)
      << out_.str();
  EXPECT_EQ(count("\n"), 1) << out_.str();
}

TEST_F(ShardLogTest, AShardThatFailsAgainAndAgainHasALinePerMinuteWithTheTimeSince) {
  for (int second = 0; second < 122; ++second) {
    log_.not_opened({5, 1}, "connect: refused");
    log_.closed({5, 1}, ShardEnd::not_opened);
    pass(1s);
  }
  const std::string line =
      "error shards cannot be opened count=1 shards=5 cause=\"connect: refused\" ";
  EXPECT_EQ(count(line + "action="), 1) << out_.str();
  EXPECT_EQ(count(line + "since=6"), 1) << "after a minute\n" << out_.str();
  EXPECT_EQ(count(line), 2) << out_.str();
  EXPECT_EQ(count("\n"), 2) << out_.str();
  log_.not_opened({6, 1}, "not enough memory");
  pass(10s);
  EXPECT_EQ(count("count=2 shards=5,6 "), 1) << "with the shard that waits\n" << out_.str();
}

TEST_F(ShardLogTest, AFailureThatEndsWhileItsLineIsHeldBackIsNotTold) {
  log_.failed({0, 1}, kGone);
  pass(3s);
  log_.serving({0, 2}, "");
  log_.failed({0, 2}, kGone);
  pass(3s);
  log_.serving({0, 3}, "");
  pass(2min);
  EXPECT_EQ(count("giving up the shards"), 1) << out_.str();
}

TEST_F(ShardLogTest, TheNextLineOfAnOutageNamesAllShardsThatAreAway) {
  log_.failed({0, 1}, kGone);
  log_.failed({1, 1}, kGone);
  pass(3s);
  log_.failed({2, 1}, kGone);
  log_.serving({1, 2}, "");
  pass(65s);
  EXPECT_EQ(count("count=2 shards=0,1 "), 1) << out_.str();
  EXPECT_EQ(count("failed; giving up the shards count=2 shards=0,2 "), 1) << out_.str();
  pass(3min);
  log_.failed({3, 1}, kGone);
  pass(2s);
  EXPECT_EQ(
      count("count=1 shards=3 cause=\"write store: server closed the connection unexpectedly\" "
            "action="),
      1)
      << out_.str();
}

TEST_F(ShardLogTest, SaysFromWhichNodeShardsCameAndWhyTheyClosed) {
  log_.serving({2, 3}, "b");
  log_.serving({0, 3}, "b");
  log_.serving({1, 1}, "");
  log_.closed({8, 1}, ShardEnd::moved);
  log_.closed({9, 1}, ShardEnd::moved);
  log_.closed({3, 1}, ShardEnd::stopping);
  log_.lost({4, 1});
  log_.closed({4, 1}, ShardEnd::lost);
  pass(1s);
  EXPECT_EQ(count("info serving shards count=2 shards=0,2 from=b\n"), 1) << out_.str();
  EXPECT_EQ(count("info serving shards count=1 shards=1\n"), 1);
  EXPECT_EQ(count("info shards are closed count=2 shards=8,9 reason=\"other nodes get their share"),
            1);
  EXPECT_EQ(count("info shards are closed count=1 shards=3 reason=\"this node stops\"\n"), 1);
  EXPECT_EQ(count("warning the node lost shards; their task leases are invalid count=1 shards=4 "),
            1);
  EXPECT_EQ(count("\n"), 5) << out_.str();
}

TEST_F(ShardLogTest, NothingGatheredIsForgottenAtTheEnd) {
  {
    ShardLog log(clock_, [] {});
    log.closed({3, 1}, ShardEnd::stopping);
  }
  EXPECT_EQ(count("shards are closed"), 1);
}

TEST_F(ShardLogTest, ADebugLineHasEachShardAtOnce) {
  set_log_level(LogLevel::debug);
  log_.failed({3, 2}, "x");
  log_.closed({3, 2}, ShardEnd::failed);
  EXPECT_EQ(count("debug a shard's store failed; giving up the shard shard=3 epoch=2 cause=x\n"),
            1);
  EXPECT_EQ(count("debug a shard is closed shard=3 epoch=2 reason=\"the store failed\"\n"), 1);
}

}  // namespace
}  // namespace detent::server
