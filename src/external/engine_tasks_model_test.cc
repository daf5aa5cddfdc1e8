// A real engine and an external scheduler in memory, with random tasks, requests, faults and
// crashes on both sides. After every step, each task must count in exactly one place. At the end,
// each task was completed once, or it was cancelled and never completed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "base/wall_time.h"
#include "external/engine_tasks.h"
#include "external/far_tasks_rig.h"
#include "store/testing/fault_store.h"
#include "store/testing/memory_store.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using std::chrono::milliseconds;

using test::Crash;
using test::Fault;

class World {
 public:
  explicit World(std::uint64_t seed) : rng_(seed) {
    start();
    external_.next_fault = [this] { return external_fault(); };
    external_.meanwhile = [this] { act_here(); };
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      random_step();
      check();
    }
    end();
  }

  /// The largest number of tasks that were away at the same time.
  std::size_t most_there() const { return most_there_; }

 private:
  struct Fate {
    int done = 0;
    bool cancelled = false;
    bool has_key = false;
  };

  // ---- the server and its faults ----

  /// Starts the server again with the data on its disk. Everything in memory is lost.
  void start() {
    far_.reset();
    local_.reset();
    reopen();
    local_.emplace([this](EngineThread::Command command) { return post(std::move(command)); });
    far_.emplace(*local_, external_, clock_, far_options_, rng_.next());
  }
  void reopen() {
    engine_.reset();
    store_.reset();
    store_ = std::make_unique<FaultStore>(MemoryStore::open(disk_).value());
    engine_ = Engine::open(*store_, clock_, engine_options_).value();
  }
  /// Runs a command as EngineThread does. The command can be refused and its write can fail. The
  /// process can crash before the command, between the command and its commit, or after the commit.
  bool post(EngineThread::Command command) {
    act_here();
    const std::uint32_t fault = is_ending_ ? 99 : rng_.below(60);
    if (fault == 0) return false;
    if (fault == 1) throw Crash{};
    if (fault == 2) store_->fail_write(1, WriteFault::not_applied);
    if (fault == 3) store_->fail_write(1, WriteFault::applied);
    command(*engine_);
    if (fault == 4) throw Crash{};
    settle();
    if (fault == 2 || fault == 3) reopen();  // drop a fault that still waits for a write
    if (fault == 5) throw Crash{};
    return true;
  }
  void settle() {
    do {
      if (!engine_->turn()) reopen();
    } while (engine_->next_wakeup() && *engine_->next_wakeup() <= clock_.now());
  }
  /// From time to time, the external scheduler is down for a while.
  Fault external_fault() {
    if (is_ending_) return Fault::none;
    if (rng_.below(20) == 0) is_down_ = !is_down_;
    if (is_down_) return rng_.below(4) == 0 ? Fault::crash_before : Fault::before;
    if (rng_.below(8) != 0) return Fault::none;
    return static_cast<Fault>(1 + rng_.below(5));
  }
  template <class Do>
  void until_crash(Do what) {
    try {
      what();
    } catch (const Crash&) {
      start();
    }
  }

  // ---- the random steps ----

  void random_step() {
    switch (rng_.below(9)) {
      case 0:
      case 1:
        return schedule();
      case 2:
        return act_here();
      case 3:
      case 4:
        return until_crash([this] { act_anywhere(); });
      case 5:
        return pass(milliseconds{rng_.below(30'000)});
      default:
        return until_crash([this] { far_->step(); });
    }
  }
  milliseconds delay() { return milliseconds{rng_.below(400'000)}; }
  void schedule() {
    const bool has_key = rng_.below(4) == 0;
    ScheduleRequest request{.queue = rng_.below(2) == 0 ? "p" : "q", .due = delay()};
    if (has_key) request.key = "k" + std::to_string(++last_key_);
    const TaskId id = engine_->schedule(request).value().task.id;
    settle();
    ASSERT_TRUE(fates_.emplace(id, Fate{.has_key = has_key}).second) << "an id was given twice";
  }
  void pass(milliseconds time) {
    clock_.advance(time);
    settle();
    for (const char* queue : {"p", "q"}) {
      const auto leased = engine_->lease({.queue = queue, .max = 100}).value();
      for (const LeasedTask& task : leased) {
        ASSERT_EQ(engine_->complete(task.lease), LeaseOutcome::done);
        ++fates_.at(task.task.id).done;
      }
    }
    settle();
  }
  TaskId any_task() {
    return std::next(fates_.begin(), rng_.below(static_cast<std::uint32_t>(fates_.size())))->first;
  }
  /// A request or the passing of time changes tasks here, also in the middle of a step.
  void act_here() {
    if (fates_.empty() || is_ending_) return;
    const TaskId id = any_task();
    switch (rng_.below(5)) {
      case 0:
        (void)engine_->move(id, Due{delay()});
        return settle();
      case 1:
        (void)cancel(id);
        return;
      case 2:
        return pass(milliseconds{rng_.below(5'000)});
      default:
        return;
    }
  }
  Result<void> cancel(TaskId id) {
    TRY(engine_->cancel(id));
    settle();
    EXPECT_EQ(fates_.at(id).done, 0);
    EXPECT_FALSE(std::exchange(fates_.at(id).cancelled, true)) << to_string(id) << " twice";
    return ok();
  }
  /// A client finds, cancels or moves a task, wherever the task is.
  void act_anywhere() {
    if (fates_.empty()) return;
    const TaskId id = any_task();
    if (engine_->get(id)) return;
    if (rng_.below(3) == 0) {
      const Result<std::optional<Task>> found = far_->find(id);
      const bool is_there = found && *found;
      EXPECT_FALSE(is_there && has_ended(fates_.at(id))) << to_string(id);
      return;
    }
    const Result<bool> fetched = far_->fetch(id);
    if (!fetched) return;
    if (has_ended(fates_.at(id))) return;
    // The task may have come back by itself, or fetch() brought it. In both cases it must be here.
    ASSERT_TRUE(engine_->get(id)) << to_string(id) << " was in neither place";
    if (rng_.below(2) == 0) {
      ASSERT_TRUE(cancel(id));
    } else {
      ASSERT_TRUE(engine_->move(id, Due{delay()}));
      settle();
    }
  }

  // ---- the invariants ----

  static bool has_ended(const Fate& fate) { return fate.done > 0 || fate.cancelled; }

  void check() {
    settle();
    engine_->check_invariants();
    ASSERT_FALSE(far_->stats().lost) << far_->stats().lost->message;
    most_there_ = std::max(most_there_, external_.entries.size());
    const std::vector<TaskId> marks = engine_->marked(100'000).value();
    for (const auto& [id, fate] : fates_) {
      const bool is_here = engine_->get(id).has_value();
      const bool is_there = external_.entries.contains(id);
      const bool counts_there = is_there && std::ranges::find(marks, id) == marks.end();
      ASSERT_FALSE(is_here && counts_there) << to_string(id) << " counts twice";
      ASSERT_EQ(is_here || counts_there, !has_ended(fate)) << to_string(id);
      ASSERT_LE(fate.done, 1) << to_string(id);
      ASSERT_FALSE(is_there && fate.has_key) << to_string(id);
    }
  }
  /// Ends all faults, and waits until all tasks are due.
  void end() {
    is_ending_ = true;
    for (int i = 0; i < 40 && !testing::Test::HasFailure(); ++i) {
      for (int steps = 0; steps < 10; ++steps) far_->step();
      pass(20s);
      check();
    }
    EXPECT_TRUE(external_.entries.empty());
    EXPECT_TRUE(engine_->marked(9).value().empty());
    for (const auto& [id, fate] : fates_) {
      EXPECT_EQ(fate.done, fate.cancelled ? 0 : 1) << to_string(id);
    }
  }

  ManualClock clock_;
  EngineOptions engine_options_{.window = 30s, .max_loaded = 50};
  FarTasksOptions far_options_{.near = 60s,
                               .far = 120s,
                               .interval = 10s,
                               .claim = 20s,
                               .batch = 4,
                               .backoff = {.initial = 1s, .max = 4s}};
  MemoryDisk disk_;
  std::unique_ptr<FaultStore> store_;
  std::unique_ptr<Engine> engine_;
  test::FakeExternal external_;
  std::optional<EngineTasks> local_;
  std::optional<FarTasks> far_;
  Rng rng_;
  std::map<TaskId, Fate> fates_;
  int last_key_ = 0;
  std::size_t most_there_ = 0;
  bool is_down_ = false;
  bool is_ending_ = false;
};

TEST(EngineTasksModel, NoTaskIsLostOrDoneTwiceWhateverFailsOrCrashes) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  std::size_t most_there = 0;
  for (int round = 0; round < test_rounds(12) && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    World world(seed + static_cast<std::uint64_t>(round));
    world.run(2'000);
    most_there = std::max(most_there, world.most_there());
  }
  EXPECT_GT(most_there, 8U) << "the test must move more tasks to be useful";
}

}  // namespace
}  // namespace detent
