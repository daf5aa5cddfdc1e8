// Crashes at every write, before and after the write took effect. Acknowledged tasks must survive,
// removed tasks must stay removed, and only leased tasks may be handed out a second time.
#include <algorithm>
#include <map>
#include <set>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

/// Makes random calls and crashes, and records the answers about each task as a client sees them.
class EngineCrash : public EngineFixture {
 protected:
  enum class Known { acknowledged, unknown, removed };

  bool one_in(std::uint32_t n) { return rng_.below(n) == 0; }

  void step() {
    if (one_in(40)) plan_fault();
    const std::uint32_t choice = rng_.below(15);
    if (choice < 5) {
      do_schedule();
    } else if (choice < 7) {
      do_lease();
    } else if (choice < 10) {
      do_with_lease();
    } else if (choice < 13) {
      do_with_task();
    } else if (choice < 14) {
      do_with_queue();
    } else {
      clock_.advance(std::chrono::milliseconds{rng_.below(3'000)});
    }
    if (one_in(3)) finish_turn();
  }

  /// Commits; a failed write ends the run of this engine, as a crash does.
  void finish_turn() {
    if (!engine_->turn() && engine_->stopped_by()) return restart();
    engine_->check_invariants();
  }
  void restart() {
    leases_.clear();
    removing_.clear();
    // These calls were not acknowledged. Their tasks may exist or not, and their ids may be used
    // again.
    std::erase_if(known_, [](const auto& entry) { return entry.second == Known::unknown; });
    crash_and_open();
    engine_->check_invariants();
  }
  /// A run of random steps with crashes, on an empty disk.
  void run(std::uint64_t seed, int steps) {
    known_.clear();
    leases_.clear();
    removing_.clear();
    rng_ = Rng(seed);
    open_on_a_new_disk();
    for (int i = 0; i < steps && !HasFatalFailure(); ++i) step();
    restart();
  }
  /// Compares the engine with the answers that the client got. Returns a line for each task with a
  /// contradiction.
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
    const Result<TaskSnapshot> view = engine_->schedule(request("q", delay));
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
  void do_with_lease() {
    if (leases_.empty()) return;
    const LeasedTask task = leases_.back();
    if (one_in(5)) {
      (void)engine_->extend(task.lease, 90s);
      return;
    }
    leases_.pop_back();
    switch (rng_.below(4)) {
      case 0:
        (void)engine_->fail({.lease = task.lease, .delay = 10ms, .error = "again"});
        return;
      case 1:
        (void)engine_->bury(task.lease, "hopeless", one_in(2) ? 7 : kDefaultPriority);
        return;
      case 2:
        (void)engine_->release(task.lease, one_in(2) ? 10ms : 0ms, rng_.below(2'000));
        return;
      default:
        const Result<LeaseOutcome> outcome = engine_->complete(task.lease);
        if (outcome && *outcome == LeaseOutcome::done) forget_after_commit(task.task.id);
    }
  }
  void do_with_task() {
    if (known_.empty()) return;
    const auto it =
        std::next(known_.begin(), rng_.below(static_cast<std::uint32_t>(known_.size())));
    const TaskId id = it->first;
    switch (rng_.below(4)) {
      case 0:
        (void)engine_->move(id, std::chrono::milliseconds{rng_.below(3'600'000)});
        return;
      case 1:
        (void)engine_->run_now(id);
        return;
      case 2:
        (void)engine_->redrive(id);
        return;
      default:
        if (engine_->cancel(id)) forget_after_commit(id);
    }
  }
  void do_with_queue() {
    if (!one_in(10)) {
      (void)engine_->redrive("q", 1 + rng_.below(3));
      return;
    }
    const Result<QueueStep> step = engine_->purge("q", 1 + rng_.below(30));
    if (!step) return;
    std::size_t gone = 0;
    for (const auto& [id, known] : known_) {
      if (known == Known::removed || removing_.contains(id)) continue;
      const Result<TaskSnapshot> view = engine_->get(id);
      if (view || view.error().code != ErrorCode::not_found) continue;
      ++gone;
      forget_after_commit(id);
    }
    EXPECT_LE(gone, step->count) << "some the outside was never told of";
  }
  void forget_after_commit(TaskId id) {
    known_[id] = Known::unknown;
    removing_.insert(id);
    engine_->after_commit([this, id](const Result<void>& committed) {
      if (committed) known_[id] = Known::removed;
    });
  }

  Rng rng_{0};
  std::map<TaskId, Known> known_;
  std::set<TaskId> removing_;  // since the engine was opened
  std::vector<LeasedTask> leases_;
};

TEST_F(EngineCrash, AcknowledgedTasksSurviveAndRemovedTasksStayAway) {
  const std::uint64_t first_seed = test_seed();
  for (std::uint64_t seed = first_seed; seed < first_seed + 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE(replay_hint(seed));
    run(seed, test_rounds(2'000));
    EXPECT_EQ(contradictions(), std::vector<std::string>{});
  }
}

// A control: the check above finds a store that has lost one acknowledged task.
TEST_F(EngineCrash, TheCheckFindsALostTask) {
  run(1, 500);
  const auto it =
      std::ranges::find(known_, Known::acknowledged, &decltype(known_)::value_type::second);
  ASSERT_NE(it, known_.end());
  const Place place = store_->find(it->first).value().value().place;
  WriteBatch batch;
  batch.erases.push_back(place);
  ASSERT_TRUE(memory_store_->write(batch, Durability::synced));
  crash_and_open();
  EXPECT_EQ(contradictions(), std::vector{"lost: " + to_string(it->first)});
}

TEST_F(EngineCrash, AFailedWriteIsNotAcknowledgedWhetherItWasAppliedOrNot) {
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
