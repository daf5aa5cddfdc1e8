// Crashes at every write, before and after it took effect: what was acknowledged is there, what
// was removed stays away, and nothing is handed out twice but what was leased.
#include <map>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/engine_fixture.h"

namespace detent {
namespace {

/// Drives random verbs and crashes; keeps what the outside knows of each task.
class EngineCrash : public EngineFixture {
 protected:
  enum class Known { acknowledged, unknown, removed };

  bool one_in(std::uint32_t n) { return rng_.below(n) == 0; }

  void step() {
    if (one_in(40)) plan_fault();
    const std::uint32_t choice = rng_.below(10);
    if (choice < 4) {
      do_schedule();
    } else if (choice < 6) {
      do_lease();
    } else if (choice < 8) {
      do_end_lease();
    } else if (choice < 9) {
      do_cancel();
    } else {
      clock_.advance(std::chrono::milliseconds{rng_.below(3'000)});
    }
    if (one_in(3)) finish_turn();
  }

  /// Commits; a failed write ends the run of this engine, as a crash does.
  void finish_turn() {
    if (engine_->turn() || !engine_->stopped_by()) return;
    restart();
  }
  void restart() {
    leases_.clear();
    // Nobody was told of these: they may be there or not, and an id that was never told may come
    // again.
    std::erase_if(known_, [](const auto& entry) { return entry.second == Known::unknown; });
    crash_and_open();
    engine_->check_invariants();
  }
  /// A run of random steps with crashes, on an empty disk.
  void run(std::uint64_t seed, int steps) {
    known_.clear();
    rng_ = Rng(seed);
    open_on_a_new_disk();
    for (int i = 0; i < steps && !HasFatalFailure(); ++i) step();
    restart();
  }
  /// What the outside knows and the engine does not say.
  std::vector<std::string> contradictions() {
    std::vector<std::string> found;
    for (const auto& [id, known] : known_) {
      const bool is_there = engine_->get(id).has_value();
      if (known == Known::acknowledged && !is_there) found.push_back("lost: " + to_string(id));
      if (known == Known::removed && is_there) found.push_back("came back: " + to_string(id));
    }
    return found;
  }

  void plan_fault() {
    store_->fail_write(1 + rng_.below(3),
                       one_in(2) ? WriteFault::not_applied : WriteFault::applied);
  }
  void do_schedule() {
    const std::chrono::milliseconds delay{one_in(3) ? rng_.below(3'600'000) : rng_.below(5'000)};
    const Result<TaskView> view = engine_->schedule(request("q", delay));
    if (!view) return;
    const TaskId id = view->task.id;
    ASSERT_FALSE(known_.contains(id)) << "an id was used twice";
    known_[id] = Known::unknown;
    engine_->after_commit([this, id](const Result<void>& committed) {
      if (committed && known_[id] == Known::unknown) known_[id] = Known::acknowledged;
    });
  }
  void do_lease() {
    Result<std::vector<LeasedTask>> tasks =
        engine_->lease({.queue = "q", .max = 1 + rng_.below(3)});
    if (!tasks) return;
    for (const LeasedTask& task : *tasks) {
      ASSERT_NE(known_[task.task.id], Known::removed) << "a removed task came back";
      ASSERT_LE(task.task.due_at, wall_now()) << "early";
      leases_.push_back(task);
    }
  }
  void do_end_lease() {
    if (leases_.empty()) return;
    const LeasedTask task = leases_.back();
    leases_.pop_back();
    if (one_in(3)) {
      (void)engine_->fail({.lease = task.lease, .delay = 10ms, .error = "again"});
      return;
    }
    const Result<LeaseOutcome> outcome = engine_->complete(task.lease);
    if (outcome && *outcome == LeaseOutcome::done) forget_after_commit(task.task.id);
  }
  void do_cancel() {
    if (known_.empty()) return;
    const auto it =
        std::next(known_.begin(), rng_.below(static_cast<std::uint32_t>(known_.size())));
    if (engine_->cancel(it->first)) forget_after_commit(it->first);
  }
  void forget_after_commit(TaskId id) {
    known_[id] = Known::unknown;
    engine_->after_commit([this, id](const Result<void>& committed) {
      if (committed) known_[id] = Known::removed;
    });
  }

  Rng rng_{0};
  std::map<TaskId, Known> known_;
  std::vector<LeasedTask> leases_;
};

TEST_F(EngineCrash, NothingAcknowledgedIsLostAndNothingRemovedComesBack) {
  const std::uint64_t first_seed = test_seed();
  for (std::uint64_t seed = first_seed; seed < first_seed + 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE(replay_hint(seed));
    run(seed, 2'000);
    EXPECT_EQ(contradictions(), std::vector<std::string>{});
  }
}

// The control: the check above finds a store that forgot one acknowledged task.
TEST_F(EngineCrash, ALostTaskIsFound) {
  run(1, 500);
  const auto it =
      std::ranges::find(known_, Known::acknowledged, &decltype(known_)::value_type::second);
  ASSERT_NE(it, known_.end());
  const DueKey place = store_->find(it->first).value().value().place;
  ASSERT_TRUE(
      memory_store_->write({.puts = {}, .erases = {place}, .counts = {}}, Durability::synced));
  crash_and_open();
  EXPECT_EQ(contradictions(), std::vector{"lost: " + to_string(it->first)});
}

TEST_F(EngineCrash, AnUnknownOutcomeIsNotAcknowledgedWhicheverWayItWent) {
  for (const WriteFault fault : {WriteFault::not_applied, WriteFault::applied}) {
    store_->fail_write(1, fault);
    const TaskId id = engine_->schedule(request("q", 1h)).value().task.id;
    EXPECT_FALSE(engine_->turn());
    crash_and_open();
    EXPECT_EQ(engine_->get(id).has_value(), fault == WriteFault::applied);
    engine_->check_invariants();
  }
}

}  // namespace
}  // namespace detent
