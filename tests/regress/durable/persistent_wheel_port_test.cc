// Bugs of the persistent wheel, and the correct results of Detent: the engine on a store in memory.
// The data of the store outlives the engine. cases.md lists all cases.
#include "tests/regress/durable/persistent_wheel_port.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "detent/clock.h"
#include "engine/engine.h"
#include "store/testing/fault_store.h"
#include "store/testing/memory_lease_table.h"
#include "store/testing/memory_store.h"

namespace detent::classic {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

constexpr std::int64_t kHour = PersistentWheelPort::kHour;
constexpr std::int64_t kDay = PersistentWheelPort::kDay;
using Fired = std::vector<std::pair<int, std::int64_t>>;

/// Detent's engine in the place of the port.
class OurEngine {
 public:
  explicit OurEngine(EngineOptions options = {}) : options_(options) { open(); }

  /// Simulates a kill: only the disk is kept.
  void crash_and_open() {
    engine_.reset();
    faults_.reset();
    store_.reset();
    open();
  }
  void advance(std::chrono::milliseconds by) {
    clock_.advance(by);
    settle();
  }
  void stay_down(std::chrono::milliseconds time) { clock_.advance(time); }
  TaskId schedule(std::chrono::milliseconds delay) {
    const TaskId id = engine_->schedule({.queue = "q", .due = delay}).value().task.id;
    EXPECT_TRUE(engine_->commit());
    return id;
  }
  std::vector<LeasedTask> lease(std::size_t max = 1'000) {
    settle();
    return engine_->lease({.queue = "q", .max = max}).value();
  }
  /// Leases and completes tasks until none is ready. A task that is handed out twice appears twice.
  std::vector<TaskId> drain() {
    std::vector<TaskId> ids;
    while (true) {
      const std::vector<LeasedTask> leased = lease();
      if (leased.empty()) return ids;
      for (const LeasedTask& task : leased) {
        ids.push_back(task.task.id);
        EXPECT_EQ(engine_->complete(task.lease).value(), LeaseOutcome::done);
      }
    }
  }
  Engine& engine() { return *engine_; }
  FaultStore& faults() { return *faults_; }

 private:
  void open() {
    store_ = MemoryStore::open(disk_).value();
    faults_ = std::make_unique<FaultStore>(*store_);
    engine_ = Engine::open(*faults_, clock_, options_).value();
  }
  void settle() {
    do {
      ASSERT_TRUE(engine_->turn());
    } while (engine_->next_wakeup() && *engine_->next_wakeup() <= clock_.now());
  }

  EngineOptions options_;
  ManualClock clock_;
  MemoryDisk disk_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<FaultStore> faults_;
  std::unique_ptr<Engine> engine_;
};

TEST(PersistentWheelPort, PW_NEAR_VOLATILE) {
  TaskTable table;
  PersistentWheelPort(table, 0, {}).add(1, 60);  // then the process dies
  PersistentWheelPort after(table, 1, {});
  after.run_until(3 * kHour);
  EXPECT_EQ(after.fired(), Fired{});

  OurEngine ours;
  const TaskId id = ours.schedule(60s);
  ours.crash_and_open();
  ours.advance(59s);
  EXPECT_EQ(ours.drain(), std::vector<TaskId>{});
  ours.advance(1s);
  EXPECT_EQ(ours.drain(), std::vector{id});
}

TEST(PersistentWheelPort, PW_OVERDUE_SKIPPED) {
  TaskTable table;
  PersistentWheelPort(table, 0, {}).add(1, 2 * kHour);
  PersistentWheelPort after(table, 3 * kHour, {});  // it was down when the task became due
  after.run_until(30 * kHour);
  EXPECT_EQ(after.fired(), Fired{});
  EXPECT_EQ(table.size(), 1u);

  OurEngine ours;
  const TaskId id = ours.schedule(2h);
  ours.stay_down(3h);
  ours.crash_and_open();
  const auto leased = ours.lease();
  ASSERT_EQ(leased.size(), 1u);
  EXPECT_EQ(leased[0].task.id, id);
  EXPECT_EQ(leased[0].lateness, 1h);
}

TEST(PersistentWheelPort, PW_FIRST_SCAN_1H) {
  TaskTable table;
  PersistentWheelPort(table, 0, {}).add(1, 2 * kHour);
  PersistentWheelPort after(table, 2 * kHour - 600, {});  // started ten minutes before the due time
  after.run_until(30 * kHour);
  EXPECT_EQ(after.fired(), Fired{}) << "by the first scan it is overdue";

  OurEngine ours;
  const TaskId id = ours.schedule(2h);
  ours.stay_down(2h - 10min);
  ours.crash_and_open();
  ours.advance(10min);
  EXPECT_EQ(ours.drain(), std::vector{id});
}

TEST(PersistentWheelPort, PW_DELETE_BEFORE_FIRE) {
  TaskTable table;
  PersistentWheelPort port(table, 0, {});
  port.add(1, kHour + 60);
  port.run_until(kHour);  // after the scan, the task is only in memory
  EXPECT_EQ(table.size(), 0u);
  PersistentWheelPort after(table, kHour + 1, {});
  after.run_until(4 * kHour);
  EXPECT_EQ(after.fired(), Fired{});

  OurEngine ours;
  const TaskId id = ours.schedule(1h);
  ours.advance(1h);
  ASSERT_EQ(ours.lease().size(), 1u);
  ours.crash_and_open();  // a worker holds the task
  const auto again = ours.lease();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].task.id, id);
  EXPECT_EQ(again[0].attempt, 1u);
}

TEST(PersistentWheelPort, PW_DELETE_ERR_DUP) {
  TaskTable table;
  PersistentWheelPort port(table, 0, {.threshold = 2 * kHour});
  port.add(1, 3 * kHour - 60);
  table.fail_statements(1);
  port.run_until(kHour);  // loaded, but not deleted
  port.run_until(4 * kHour);
  EXPECT_EQ(port.fired().size(), 2u);

  for (const WriteFault fault : {WriteFault::not_applied, WriteFault::applied}) {
    OurEngine ours;
    const TaskId id = ours.schedule(0s);
    const auto leased = ours.lease();
    ours.faults().fail_write(1, fault);
    ASSERT_TRUE(ours.engine().complete(leased.at(0).lease));
    EXPECT_FALSE(ours.engine().commit()) << "the completion must not be acknowledged";
    EXPECT_FALSE(ours.engine().lease({.queue = "q"}))
        << "no task is handed out after a failed write";
    ours.crash_and_open();
    const std::vector<TaskId> once_or_not =
        fault == WriteFault::applied ? std::vector<TaskId>{} : std::vector{id};
    EXPECT_EQ(ours.drain(), once_or_not);
  }
}

TEST(PersistentWheelPort, PW_7D_VS_24H) {
  TaskTable table;
  PersistentWheelPort port(table, 0, {.threshold = 7 * kDay});
  port.add(1, 3 * kDay + 60);
  port.run_until(4 * kDay);
  EXPECT_EQ(port.fired(), (Fired{{1, 60}})) << "three days early";

  OurEngine ours({.window = std::chrono::hours{24 * 7}});
  const TaskId id = ours.schedule(std::chrono::hours{72} + 60s);
  ours.advance(std::chrono::hours{72} + 59s);
  EXPECT_EQ(ours.drain(), std::vector<TaskId>{});
  ours.advance(1s);
  EXPECT_EQ(ours.drain(), std::vector{id});
}

constexpr int kRows = 5'000;

TEST(PersistentWheelPort, PW_OFFSET_SKIP) {
  TaskTable table;
  PersistentWheelPort port(table, 0, {.page = 1'000});
  for (int id = 0; id < kRows; ++id) port.add(id, kHour + 60 + id % 1'000);
  port.run_until(kHour);
  EXPECT_EQ(port.in_memory(), 3'000u);
  port.run_until(30 * kHour);
  EXPECT_EQ(port.fired().size(), 3'000u) << "the others were overdue at the next scan";

  OurEngine ours({.max_loaded = 1'000});
  std::set<TaskId> expected;
  for (int i = 0; i < kRows; ++i) expected.insert(ours.schedule(1h + i % 1'000 * 1s));
  ours.crash_and_open();
  ours.advance(2h);
  const std::vector<TaskId> handed_out = ours.drain();
  EXPECT_EQ(handed_out.size(), expected.size());
  EXPECT_EQ(std::set<TaskId>(handed_out.begin(), handed_out.end()), expected);
}

TEST(PersistentWheelPort, PW_UNBOUNDED_LOAD) {
  TaskTable table;
  PersistentWheelPort port(table, 0, {});
  for (int id = 0; id < kRows; ++id) port.add(id, kHour + 60);
  port.run_until(kHour);
  EXPECT_EQ(port.in_memory(), std::size_t{kRows});

  constexpr std::size_t kMost = 500;
  constexpr std::size_t kOfOneTurn = 1'000;  // one turn may load this many more
  OurEngine ours({.max_loaded = kMost});
  for (int i = 0; i < kRows; ++i) ours.schedule(1min);
  ours.crash_and_open();
  EXPECT_LE(ours.engine().stats().loaded, kMost + kOfOneTurn);
  ours.advance(1min);
  EXPECT_LE(ours.engine().stats().loaded, kMost + kOfOneTurn);
  EXPECT_EQ(ours.drain().size(), std::size_t{kRows});
}

TEST(PersistentWheelPort, PW_TWO_NODES_DUP) {
  TaskTable table;
  PersistentWheelPort one(table, 0, {.threshold = 2 * kHour});
  PersistentWheelPort other(table, 0, {.threshold = 2 * kHour});
  one.add(1, 2 * kHour + 60);
  one.run_until(kHour - 1);
  other.run_until(kHour - 1);
  const auto rows = one.select(0);
  const auto same = other.select(0);
  one.load(rows);
  other.load(same);
  one.run_until(3 * kHour);
  other.run_until(3 * kHour);
  EXPECT_EQ(one.fired().size() + other.fired().size(), 2u);

  // Detent: if two servers use one store, the second does not start. If two nodes share a lease
  // table, one of them gets the shard. The other node gets it only after that lease has expired,
  // with a higher epoch.
  MemoryDisk disk;
  const auto store = MemoryStore::open(disk);
  ASSERT_TRUE(store);
  EXPECT_EQ(MemoryStore::open(disk).error().code, ErrorCode::unavailable);
  ManualClock clock;
  MemoryLeaseTable leases(clock, 1, 5s);
  const auto first = leases.take(0, "one").value();
  ASSERT_TRUE(first);
  EXPECT_FALSE(leases.take(0, "other").value());
  clock.advance(5s);
  EXPECT_GT(leases.take(0, "other").value().value().epoch, first->epoch);
  EXPECT_TRUE(leases.beat({"one", "one:1"}, {{*first}}).value().held.empty());
}

TEST(HybridWheelPort, HY_ERR_THEN_CANCEL) {
  TaskTable table;
  PersistentWheelPort port(table, 0, {});
  port.add(1, 60);
  table.fail_statements(1);
  port.move_to_table(1, 2 * kHour);
  EXPECT_EQ(table.size() + port.in_memory(), 0u) << "neither here nor there";

  for (const WriteFault fault : {WriteFault::not_applied, WriteFault::applied}) {
    OurEngine ours;
    const TaskId id = ours.schedule(60s);
    ours.faults().fail_write(1, fault);
    ASSERT_TRUE(ours.engine().move(id, 2h));
    EXPECT_FALSE(ours.engine().commit());
    ours.crash_and_open();
    ours.advance(60s);
    const bool has_moved = fault == WriteFault::applied;
    EXPECT_EQ(ours.drain().size(), has_moved ? 0u : 1u);
    ours.advance(2h);
    EXPECT_EQ(ours.drain().size(), has_moved ? 1u : 0u);
  }
}

}  // namespace
}  // namespace detent::classic
