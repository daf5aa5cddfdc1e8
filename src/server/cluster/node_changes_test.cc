// Nodes send each other the changes of their tasks. Each change must arrive once. If changes are
// lost, a gap must be reported.
#include "server/cluster/node_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "net/http_server/local_exchange.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;

class NodeChangesTest : public ::testing::Test {
 public:
  ~NodeChangesTest() override {
    for (NodeChanges* const node : all_) node->stop();
  }

 protected:
  std::unique_ptr<NodeChanges> new_node(std::uint64_t run) {
    return std::make_unique<NodeChanges>(
        [this](const std::string& address, const std::string& after,
               NodeChanges::Answered answered) { ask(address, after, std::move(answered)); },
        clock_, run);
  }
  /// The connection from one node to another.
  void ask(const std::string& address, const std::string& after, NodeChanges::Answered answered) {
    NodeChanges* to = nullptr;
    if (const auto it = reached_.find(address); it != reached_.end()) to = it->second;
    if (to == nullptr) {
      ++unanswered_;
      return answered(std::nullopt);
    }
    if (!after.empty()) ++pending_;
    to->answer(after, net::Responder(std::make_shared<net::LocalExchange>(
                          [this, is_first = after.empty(), answered = std::move(answered)](
                              std::optional<net::HttpResponse> response) mutable {
                            if (is_garbled_) response->body[0] = 0;  // of another version
                            answered(std::move(response->body));
                            if (!is_first) --pending_;
                            return true;
                          })));
  }
  void connect(const std::string& address, NodeChanges* node) { reached_[address] = node; }
  void happen(ChangeFeed& feed, std::uint64_t first, std::uint64_t count = 1) {
    for (std::uint64_t id = first; id < first + count; ++id) {
      feed.note({.id = {id}, .queue = "q", .event = TaskEvent::leased, .state = TaskState::leased});
      feed.publish();
    }
  }
  /// Does at both nodes what the thread of the reader does.
  void collect() {
    // In the second round, `a` takes what `b` has answered in the first.
    for (int round = 0; round < 2; ++round) {
      for (NodeChanges* const node : all_) node->collect(clock_.now());
    }
  }
  /// Moves time until `a` has got this number of changes, or a gap.
  void await(std::size_t count) {
    while (told_.changes.size() < count && !told_.has_gap) pass(10ms);
  }
  void pass(std::chrono::milliseconds time) {
    clock_.advance(time);
    collect();
    ChangeLog& log = a_->log();
    for (read_ = std::max(read_, log.begin()); read_ < log.end(); ++read_) {
      const ChangeLog::Entry& entry = log.at(read_);
      if (entry.is_change()) told_.changes.push_back(entry.change);
      told_.missed += entry.missed;
      told_.has_gap |= entry.is_gap;
    }
  }
  /// Watches at `a`, and moves time until `a` gets the changes of `b`.
  void watch() {
    a_->set_nodes({"b"});
    a_->watch();
    while (told_.changes.empty()) {
      happen(*at_b_, ++last_);
      pass(10ms);
    }
    pass(100ms);
    EXPECT_FALSE(told_.has_gap);
    // Wait until no further changes arrive, so that they are not counted later.
    for (std::size_t was = 0; was != told_.changes.size();) {
      was = told_.changes.size();
      for (int i = 0; i < 100; ++i) pass(10ms);
    }
    told_ = {};
  }

  ManualClock clock_;
  std::map<std::string, NodeChanges*> reached_;
  std::unique_ptr<NodeChanges> a_ = new_node(1);
  std::unique_ptr<NodeChanges> b_ = new_node(2);
  std::shared_ptr<ChangeFeed> at_a_ = a_->new_feed();
  std::shared_ptr<ChangeFeed> at_b_ = b_->new_feed();
  std::uint64_t last_ = 0;
  int unanswered_ = 0;
  int pending_ = 0;          // questions that go on after an answer
  bool is_garbled_ = false;  // true: the nodes answer garbage
  ToldChanges told_;
  std::uint64_t read_ = 0;                             // the next number of the log of `a`
  std::vector<NodeChanges*> all_{a_.get(), b_.get()};  // that collect

 public:
  NodeChangesTest() { connect("b", b_.get()); }
};

TEST_F(NodeChangesTest, WhatHappensHereAndElsewhereIsToldOnceAndAsItWas) {
  watch();
  happen(*at_a_, 1'000, 50);
  happen(*at_b_, 2'000, 50);
  await(100);
  for (int i = 0; i < 100; ++i) pass(10ms);
  std::map<std::uint64_t, int> times;
  for (const TaskChange& change : told_.changes) {
    ++times[change.id.value];
    EXPECT_EQ(change.queue, "q");
    EXPECT_EQ(change.event, TaskEvent::leased);
    EXPECT_EQ(change.state, TaskState::leased);
  }
  EXPECT_EQ(times.size(), 100u);
  EXPECT_EQ(told_.changes.size(), 100u);
  EXPECT_EQ(told_.missed, 0u);
  EXPECT_FALSE(told_.has_gap);
}

TEST_F(NodeChangesTest, ANodeThatDoesNotAnswerForAWhileIsCaughtUpWith) {
  watch();
  connect("b", nullptr);
  pass(1s);
  happen(*at_b_, 2'000, 50);
  pass(30s);
  connect("b", b_.get());
  await(50);
  EXPECT_EQ(told_.changes.size(), 50u);
  EXPECT_FALSE(told_.has_gap);
}

TEST_F(NodeChangesTest, ChangesThatAreNoLongerKeptAreAGap) {
  watch();
  connect("b", nullptr);
  while (at_b_->is_watched()) pass(1s);  // no node asks `b` any more
  happen(*at_b_, 2'000, 1);
  connect("b", b_.get());
  await(1);
  EXPECT_TRUE(told_.has_gap);
}

TEST_F(NodeChangesTest, ARestartedNodeIsAGap) {
  watch();
  const auto again = new_node(3);
  const auto feed = again->new_feed();
  all_.push_back(again.get());
  connect("c", again.get());
  ask("c", "", [](const std::optional<std::string>&) {});
  while (!feed->is_watched()) pass(1ms);
  happen(*feed, 5'000, 1'000);  // more changes than `b` has sent
  for (int i = 0; i < 100; ++i) pass(10ms);
  connect("b", again.get());
  b_->stop();
  await(1);
  EXPECT_TRUE(told_.has_gap);
  all_.pop_back();
}

TEST_F(NodeChangesTest, ANodeThatComesOrGoesIsAGapWhileSomebodyWatches) {
  a_->set_nodes({"b", "c"});
  watch();
  a_->set_nodes({"b"});  // no change
  pass(10ms);
  EXPECT_FALSE(told_.has_gap);
  for (const std::vector<std::string>& nodes :
       {std::vector<std::string>{"b", "c"}, std::vector<std::string>{"c"}}) {
    a_->set_nodes(nodes);
    pass(10ms);
    EXPECT_TRUE(told_.has_gap);
    told_ = {};
  }
}

TEST_F(NodeChangesTest, ANodeThatDoesNotAnswerAtFirstIsAGapWhenItDoes) {
  connect("b", nullptr);
  a_->set_nodes({"b"});
  a_->watch();
  while (unanswered_ == 0) pass(1ms);
  connect("b", b_.get());
  while (told_.changes.empty() && !told_.has_gap) {
    happen(*at_b_, ++last_);
    pass(10ms);
  }
  EXPECT_TRUE(told_.has_gap);
}

TEST_F(NodeChangesTest, WhatANodeThatComesDoesBeforeItIsAskedIsAGap) {
  watch();
  const auto c = new_node(3);
  const auto at_c = c->new_feed();
  all_.push_back(c.get());
  a_->set_nodes({"b", "c"});
  pass(1ms);
  EXPECT_TRUE(told_.has_gap);
  told_ = {};
  connect("c", c.get());
  while (told_.changes.empty() && !told_.has_gap) {
    happen(*at_c, ++last_);
    pass(10ms);
  }
  EXPECT_TRUE(told_.has_gap);
  all_.pop_back();
}

TEST_F(NodeChangesTest, ChangesOfANodeThatLeavesAndReturnsArriveOnce) {
  watch();
  while (pending_ == 0) pass(1ms);
  a_->set_nodes({});
  a_->set_nodes({"b"});
  while (pending_ < 2) pass(1ms);  // the earlier question, and a new question
  EXPECT_TRUE(told_.has_gap);
  told_ = {};
  std::map<std::uint64_t, int> times;
  for (std::uint64_t round = 0; round < 20; ++round) {
    happen(*at_b_, 2'000 + round * 5, 5);
    await(5 * (round + 1));
  }
  for (int i = 0; i < 100; ++i) pass(10ms);
  for (const TaskChange& change : told_.changes) ++times[change.id.value];
  EXPECT_EQ(times.size(), 100u);
  EXPECT_EQ(told_.changes.size(), 100u);
}

TEST_F(NodeChangesTest, AnAnswerThatCannotBeReadIsAGap) {
  is_garbled_ = true;
  a_->set_nodes({"b"});
  a_->watch();
  while (!told_.has_gap) pass(10ms);
}

TEST_F(NodeChangesTest, WhoeverAsksAfterTheEndIsAnsweredAtOnce) {
  b_->stop();
  bool is_answered = false;
  ask("b", "2-1",
      [&](const std::optional<std::string>& bytes) { is_answered = bytes.has_value(); });
  EXPECT_TRUE(is_answered);
}

TEST_F(NodeChangesTest, FeedsOfEnginesThatHaveEndedAreNotKeptWhileNobodyWatches) {
  const std::weak_ptr<ChangeFeed> ended = a_->new_feed();
  a_->new_feed();
  EXPECT_TRUE(ended.expired());
}

TEST_F(NodeChangesTest, ChangesThatDoNotFitIntoOneAnswerFollow) {
  watch();
  connect("b", nullptr);
  pass(1s);
  for (std::uint64_t i = 0; i < 6; ++i) {
    happen(*at_b_, 2'000 + i * 1'000, 1'000);
    pass(1s);
  }
  connect("b", b_.get());
  await(6'000);
  EXPECT_EQ(told_.changes.size(), 6'000u);
  EXPECT_EQ(told_.missed, 0u);
  EXPECT_FALSE(told_.has_gap);
}

TEST_F(NodeChangesTest, ChangesBeyondTheLimitOfAFeedAreCountedAsMissed) {
  watch();
  happen(*at_b_, 2'000, ChangeFeed::kMaxChanges + 100);
  while (told_.missed == 0) pass(50ms);
  EXPECT_EQ(told_.changes.size(), ChangeFeed::kMaxChanges);
  EXPECT_EQ(told_.missed, 100u);
  EXPECT_FALSE(told_.has_gap);
}

TEST_F(NodeChangesTest, AnotherNodeIsToldOnlyWhatHappenedHere) {
  connect("a", a_.get());
  watch();
  std::optional<std::string> answer;
  ask("a", "1-" + std::to_string(a_->log().end()),
      [&](std::optional<std::string> bytes) { answer = std::move(bytes); });
  happen(*at_b_, 2'000, 5);
  await(5);
  EXPECT_FALSE(answer) << "these changes are in the log of `a`, but happened at `b`";
  happen(*at_a_, 1'000);
  await(6);
  ASSERT_TRUE(answer);
  std::size_t changes = 0;
  const std::string_view queue = "\1q";  // with its length in front
  for (auto at = answer->find(queue); at != std::string::npos; at = answer->find(queue, at + 1)) {
    ++changes;
  }
  EXPECT_EQ(changes, 1u);
}

TEST_F(NodeChangesTest, ShardsAreWatchedWhileSomebodyWantsItAndAMinuteAfter) {
  EXPECT_FALSE(at_b_->is_watched());
  watch();
  EXPECT_TRUE(at_a_->is_watched());
  EXPECT_TRUE(at_b_->is_watched());
  a_->unwatch(clock_.now());
  EXPECT_TRUE(b_->new_feed()->is_watched()) << "a shard that opens meanwhile";
  while (at_b_->is_watched()) pass(1s);
  EXPECT_FALSE(at_a_->is_watched());
  happen(*at_a_, 1'000);
  pass(1s);
  EXPECT_TRUE(told_.changes.empty());
}

TEST_F(NodeChangesTest, WhatAnEngineToldBeforeItsEndIsTold) {
  watch();
  happen(*at_a_, 1'000, 5);
  at_a_.reset();
  await(5);
  EXPECT_EQ(told_.changes.size(), 5u);
}

}  // namespace
}  // namespace detent::server
