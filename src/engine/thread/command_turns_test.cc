#include "engine/thread/command_turns.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class CommandTurnsTest : public EngineFixture {
 protected:
  /// A command that writes down `what` when it runs.
  void add(const std::string& queue, const std::string& what) {
    turns_.add(queue, [this, what](Engine& /*engine*/) { ran_.push_back(what); });
  }
  void run_all() {
    while (!turns_.empty()) turns_.take()(*engine_);
  }

  CommandTurns turns_;
  std::vector<std::string> ran_;
};

TEST_F(CommandTurnsTest, TakesOneCommandOfEachQueueInRotation) {
  for (int i = 0; i < 5; ++i) add("storm", "s" + std::to_string(i));
  add("calm", "c0");
  add("", "x0");
  add("calm", "c1");
  EXPECT_EQ(turns_.size(), 8u);
  EXPECT_EQ(turns_.queues(), 3u);
  run_all();
  EXPECT_EQ(ran_, (std::vector<std::string>{"s0", "c0", "x0", "s1", "c1", "s2", "s3", "s4"}));
  EXPECT_EQ(turns_.size(), 0u);
  EXPECT_EQ(turns_.queues(), 0u);
}

TEST_F(CommandTurnsTest, AQueueThatReturnsIsLastInTheRotation) {
  for (int i = 0; i < 100; ++i) {
    add("storm", "s");
    add("tempest", "t");
  }
  for (int i = 0; i < 20; ++i) {
    add("calm", "c");
    const std::size_t before = ran_.size();
    while (ran_.empty() || ran_.back() != "c") turns_.take()(*engine_);
    EXPECT_LE(ran_.size() - before, 3u);
    ran_.emplace_back();
  }
}

TEST_F(CommandTurnsTest, EveryCommandRunsAndAQueueKeepsItsOrder) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::map<std::string, std::deque<std::string>> model;
  int count = 0;
  std::size_t size = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (turns_.empty() || rng.below(2) == 0) {
      const std::string queue(1, static_cast<char>('a' + rng.below(5)));
      const std::string what = queue + std::to_string(count++);
      add(queue, what);
      model[queue].push_back(what);
      ++size;
    } else {
      turns_.take()(*engine_);
      std::deque<std::string>& expected = model[ran_.back().substr(0, 1)];
      ASSERT_FALSE(expected.empty());
      ASSERT_EQ(ran_.back(), expected.front());
      expected.pop_front();
      --size;
    }
    ASSERT_EQ(turns_.size(), size);
  }
}

}  // namespace
}  // namespace detent
