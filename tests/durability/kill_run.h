// Runs a server under the load of several clients, kills it at random moments and starts it again.
// At the end all remaining tasks are leased and completed. A DeliveryHistory checks all answers.
//
// A seed decides the calls of the clients, and the number of calls before each kill. Which calls
// are running at the kill depends on the machine. So a replay sends the same requests, but can get
// other answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/testing/test_folder.h"
#include "tests/durability/child_server.h"
#include "tests/durability/delivery_history.h"

namespace detent {

class KillRun {
 public:
  KillRun(std::uint64_t seed, const std::string& program);

  /// Kills the server `times` times under load. Restarts it after each kill, and sometimes kills it
  /// during the start too. Then looks up each task that was used. Ends early if there are findings.
  void kill(int times);
  /// Kills the server once under load, and replaces the data folder by an older copy before the
  /// restart.
  void kill_and_roll_back();
  /// Leases and completes all remaining tasks, and looks up every task once more.
  void drain();

  const DeliveryHistory& history() const noexcept { return history_; }
  int kills() const noexcept { return kills_; }

 private:
  /// One client on its own thread. Sends requests until the server is gone. Confined to its thread.
  class Load;

  void work_until_killed();
  void restart();
  void check_stale(const std::vector<std::string>& leases);
  void look(DeliveryHistory::Scope scope);

  Rng rng_;
  TestFolder folder_;
  ChildServer server_;
  DeliveryHistory history_;
  std::vector<std::string> stale_;  // leases from before the last kill
  int kills_ = 0;
};

}  // namespace detent
