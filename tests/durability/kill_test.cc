// kill -9 at random moments of a busy server: nothing acknowledged is lost, nothing that ended
// comes back, leases of before are void, and the only tasks handed out twice are those leased at
// the kill. And the controls: a doctored history, and a folder put back to what it was, are found.
//
// DETENT_KILLS sets how many kills (for a soak: 1000).
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
