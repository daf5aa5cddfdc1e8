// A server under the load of several clients, killed at random moments and started again, until
// every task that is left is handed out and completed; a DeliveryHistory watches.
//
// A seed decides what the clients ask and after how many calls the server is killed; what is under
// way at that moment is up to the machine, so a replay meets the same questions, not the same
// answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/test_folder.h"
#include "tests/durability/child_server.h"
#include "tests/durability/delivery_history.h"

namespace detent {

class KillRun {
 public:
  KillRun(std::uint64_t seed, const std::string& program);

  /// So many kills under load, each followed by a restart (some are killed in their start, too) and
  /// a look at every task that was touched. Ends early when something was found.
  void kill(int times);
  /// One kill under load; before the restart the data folder is put back to what it was before.
  void kill_and_roll_back();
  /// Hands out and completes whatever is left, and looks at every task once more.
  void drain();

  const DeliveryHistory& history() const noexcept { return history_; }
  int kills() const noexcept { return kills_; }

 private:
  /// One client's thread: asks until the server is gone. Confined to it.
  class Load;

  void work_until_killed();
  void restart();
  void check_stale(const std::vector<std::string>& leases);
  void look(DeliveryHistory::Scope scope);

  Rng rng_;
  TestFolder folder_;
  ChildServer server_;
  DeliveryHistory history_;
  std::vector<std::string> stale_;  // leases of before the last kill
  int kills_ = 0;
};

}  // namespace detent
