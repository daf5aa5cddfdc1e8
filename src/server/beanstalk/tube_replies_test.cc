#include "server/beanstalk/tube_replies.h"

#include <gtest/gtest.h>

#include <string>

namespace detent::server {
namespace {

using beanstalk::Verb;

TubeReplies replies_to(Verb verb, std::uint64_t bound = 0) {
  JobCall call;
  call.command.verb = verb;
  call.command.bound = bound;
  return TubeReplies(call);
}

TEST(TubeReplies, APeekEndsWithTheFirstThatHasAJob) {
  TubeReplies replies = replies_to(Verb::peek_buried);
  EXPECT_TRUE(replies.add("NOT_FOUND\r\n"));
  EXPECT_EQ(replies.whole(), "NOT_FOUND\r\n");
  EXPECT_FALSE(replies.add("FOUND 7 1\r\nx\r\n"));
  EXPECT_EQ(replies.whole(), "FOUND 7 1\r\nx\r\n");
}

TEST(TubeReplies, AKickGoesOnWithWhatIsLeftOfItsBound) {
  TubeReplies replies = replies_to(Verb::kick, 10);
  EXPECT_TRUE(replies.add("KICKED 3\r\n"));
  EXPECT_EQ(replies.call().command.bound, 7u);
  EXPECT_TRUE(replies.add("KICKED 0\r\n"));
  EXPECT_FALSE(replies.add("KICKED 7\r\n"));
  EXPECT_EQ(replies.whole(), "KICKED 10\r\n");
}

TEST(TubeReplies, WhatWasKickedIsToldThoughAnotherPartitionFails) {
  TubeReplies replies = replies_to(Verb::kick, 10);
  EXPECT_TRUE(replies.add("KICKED 3\r\n"));
  EXPECT_FALSE(replies.add("OUT_OF_MEMORY\r\n"));
  EXPECT_EQ(replies.whole(), "KICKED 3\r\n");
}

TEST(TubeReplies, APauseIsForAllAndOneThatHasNoneIsNoMatter) {
  TubeReplies replies = replies_to(Verb::pause_tube);
  EXPECT_TRUE(replies.add("PAUSED\r\n"));
  EXPECT_TRUE(replies.add("NOT_FOUND\r\n"));
  EXPECT_EQ(replies.whole(), "PAUSED\r\n");
}

TEST(TubeReplies, JobsAreAddedUpAndTheRestIsTheFirsts) {
  const auto stats = [](const char* ready, const char* total) {
    const std::string yaml = "---\nname: \"t-jobs\"\ncurrent-jobs-ready: " + std::string(ready) +
                             "\ntotal-jobs: " + total + "\ncurrent-using: 2\npause: 5\n";
    return "OK " + std::to_string(yaml.size()) + "\r\n" + yaml + "\r\n";
  };
  TubeReplies replies = replies_to(Verb::stats_tube);
  EXPECT_TRUE(replies.add("NOT_FOUND\r\n"));
  EXPECT_TRUE(replies.add(stats("9", "20")));
  EXPECT_EQ(replies.whole(), stats("9", "20"));
  EXPECT_TRUE(replies.add("NOT_FOUND\r\n"));
  EXPECT_TRUE(replies.add(stats("4", "99")));
  EXPECT_EQ(replies.whole(), stats("13", "119"));
}

}  // namespace
}  // namespace detent::server
