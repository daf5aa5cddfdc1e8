// Kills a busy server with kill -9 at random moments. Acknowledged tasks must survive, and ended
// tasks must not come back. Leases from before the kill must be void. Only tasks that were leased
// at the kill may be delivered twice. Controls check the test itself: it must find a data folder
// that was replaced by an older copy. delivery_history_test.cc tests the checker.
//
// DETENT_KILLS sets the number of kills (for a soak: 1000).
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/test_seed.h"
#include "tests/durability/kill_run.h"

namespace detent {
namespace {

using Findings = std::vector<std::string>;

int kills_wanted() {
  const char* text = std::getenv("DETENT_KILLS");
  return text != nullptr ? std::atoi(text) : 20;
}

TEST(Kills, LoseNothingAcknowledgedAndBringNothingBack) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  KillRun run(seed, DETENT_BINARY);
  run.kill(kills_wanted());
  run.drain();
  EXPECT_EQ(run.history().findings(), Findings{});
  EXPECT_LE(run.history().duplicates(), run.history().leases_at_kills());
  EXPECT_GT(run.history().duplicates(), 0u) << "the run held no lease over a kill";
  RecordProperty("kills", run.kills());
  RecordProperty("tasks", std::to_string(run.history().asked_count()));
  RecordProperty("duplicates", std::to_string(run.history().duplicates()));
  RecordProperty("leases_at_kills", std::to_string(run.history().leases_at_kills()));
}

TEST(Kills, AreFoundToLoseTasksWhenTheFolderIsPutBack) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  KillRun run(seed, DETENT_BINARY);
  run.kill(2);
  ASSERT_EQ(run.history().findings(), Findings{});
  run.kill_and_roll_back();
  EXPECT_FALSE(run.history().findings().empty());
}

}  // namespace
}  // namespace detent
