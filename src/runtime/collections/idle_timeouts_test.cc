// IdleTimeouts on a clock that the test moves: which connections are reported, when, and which are
// not.
#include "detent/idle_timeouts.h"

#include <gtest/gtest.h>
#include <malloc.h>  // tidy-ok(third-party): glibc counts the bytes that the test is about

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "detent/executor.h"
#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<std::uint64_t>;
using Connection = IdleTimeouts::Connection;

Ids sorted(Ids ids) {
  std::ranges::sort(ids);
  return ids;
}

/// An IdleTimeouts that records the reported connections. Only the driver thread writes. Tests read
/// while the driver sleeps.
class IdleRig {
 public:
  explicit IdleRig(std::chrono::nanoseconds timeout,
                   std::chrono::nanoseconds resolution = std::chrono::nanoseconds{1})
      : idle_(std::in_place, rig_.scheduler(),
              IdleTimeoutsOptions{.timeout = timeout,
                                  .on_idle = [this](std::uint64_t id) { on_idle(id); },
                                  .resolution = resolution}) {}

  IdleTimeouts& idle() { return *idle_; }
  void end_idle() { idle_.reset(); }
  ManualClock& clock() { return rig_.clock(); }
  Scheduler& scheduler() { return rig_.scheduler(); }
  void settle() { rig_.settle(); }
  void advance(std::chrono::nanoseconds delta) {
    rig_.advance(delta);
    if (idle_) idle_->check_invariants();
  }
  const Ids& told() const { return told_; }

  /// An extra action of on_idle. Set it while the driver sleeps.
  std::function<void(std::uint64_t)> also = nullptr;

 private:
  void on_idle(std::uint64_t id) {
    told_.push_back(id);
    if (also) also(id);
  }

  SchedulerRig rig_;
  Ids told_;
  std::optional<IdleTimeouts> idle_;
};

// ---- when ---------------------------------------------------------------------------------------

TEST(IdleTimeouts, ReportsAConnectionOnceAtItsTimeoutAndNotANanosecondEarly) {
  IdleRig rig(60s);
  const Connection connection = rig.idle().add(7);
  rig.advance(60s - 1ns);
  EXPECT_TRUE(rig.told().empty());
  rig.advance(1ns);
  EXPECT_EQ(rig.told(), Ids{7});
  rig.advance(1h);
  EXPECT_EQ(rig.told(), Ids{7});
  EXPECT_EQ(rig.idle().size(), 1u);
}

TEST(IdleTimeouts, CountsFromTheLastRefresh) {
  IdleRig rig(60s);
  Connection by_clock = rig.idle().add(1);
  Connection by_loop = rig.idle().add(2);
  for (int i = 0; i < 10; ++i) {
    rig.advance(59s);
    by_clock.refresh();
    by_loop.refresh(rig.clock().now());
  }
  rig.advance(1s);
  by_loop.refresh(rig.clock().now());
  rig.advance(59s - 1ns);
  EXPECT_TRUE(rig.told().empty());
  rig.advance(1ns);
  EXPECT_EQ(rig.told(), Ids{1});
  rig.advance(1s);
  EXPECT_EQ(rig.told(), (Ids{1, 2}));
}

TEST(IdleTimeouts, ARefreshOfAnEmptyConnectionDoesNothing) {
  IdleRig rig(60s);
  Connection never;
  Connection removed = rig.idle().add(1);
  Connection moved_from = rig.idle().add(2);
  EXPECT_EQ(removed.remove(), CancelResult::cancelled);
  const Connection moved_to = std::move(moved_from);
  // The moved-from connection is the subject of this test. NOLINTNEXTLINE(bugprone-use-after-move)
  for (Connection* const empty : {&never, &removed, &moved_from}) {
    empty->refresh();
    empty->refresh(rig.clock().now());
    EXPECT_FALSE(*empty);
    EXPECT_EQ(empty->remove_and_wait(), CancelResult::not_pending);
  }
}

// The scheduler and its clock are gone by then.
TEST(IdleTimeouts, ARefreshAfterItsEndDoesNothing) {
  Connection connection;
  {
    IdleRig rig(60s);
    connection = rig.idle().add(1);
  }
  connection.refresh();
  EXPECT_EQ(connection.remove(), CancelResult::not_pending);
}

TEST(IdleTimeouts, AConnectionMayHaveItsOwnTimeout) {
  IdleRig rig(60s);
  const Connection usual = rig.idle().add(1);
  const Connection shorter = rig.idle().add(2, 1s);
  const Connection none = rig.idle().add(3, std::chrono::hours::max());
  const Connection at_once = rig.idle().add(4, -1s);
  rig.advance(0s);
  EXPECT_EQ(rig.told(), Ids{4});
  rig.advance(1s);
  EXPECT_EQ(rig.told(), (Ids{4, 2}));
  rig.advance(59s);
  EXPECT_EQ(rig.told(), (Ids{4, 2, 1}));
  rig.advance(100 * 365 * 24h);
  EXPECT_EQ(rig.told().size(), 3u);
}

TEST(IdleTimeouts, ChecksABusyConnectionOncePerTimeout) {
  IdleRig rig(1min, 10ms);
  std::vector<Connection> connections;
  for (std::uint64_t i = 0; i < 100; ++i) connections.push_back(rig.idle().add(i));
  rig.settle();
  const std::uint64_t scheduled = rig.scheduler().stats().scheduled;
  EXPECT_EQ(scheduled, 1u) << "one timer for all";
  for (int second = 0; second < 600; ++second) {
    for (Connection& connection : connections) connection.refresh();
    rig.advance(1s);
  }
  EXPECT_TRUE(rig.told().empty());
  // 60'000 refreshes. The wheel cascades a few times before each of the ten checks of the
  // connection.
  EXPECT_LE(rig.scheduler().stats().scheduled - scheduled, 100u);
}

TEST(IdleTimeouts, WakesForAConnectionThatIsEarlierThanAllOthers) {
  IdleRig rig(1h);
  const Connection first = rig.idle().add(1);
  rig.settle();
  const Connection second = rig.idle().add(2, 1s);
  EXPECT_EQ(rig.scheduler().stats().pending, 1u);
  rig.advance(1s);
  EXPECT_EQ(rig.told(), Ids{2});
}

// ---- the end of a connection --------------------------------------------------------------------

TEST(IdleTimeouts, ARemovedConnectionIsNotReported) {
  IdleRig rig(1s);
  Connection removed = rig.idle().add(1);
  Connection waited_for = rig.idle().add(2);
  { const Connection destroyed = rig.idle().add(3); }
  Connection assigned_to = rig.idle().add(4);
  assigned_to = rig.idle().add(5);
  Connection moved_from = rig.idle().add(6);
  const Connection moved_to(std::move(moved_from));
  EXPECT_EQ(removed.remove(), CancelResult::cancelled);
  EXPECT_EQ(removed.remove(), CancelResult::not_pending);
  EXPECT_EQ(waited_for.remove_and_wait(), CancelResult::cancelled);
  EXPECT_FALSE(static_cast<bool>(removed));
  EXPECT_EQ(rig.idle().size(), 2u);
  rig.advance(1s);
  EXPECT_EQ(sorted(rig.told()), (Ids{5, 6}));
  EXPECT_EQ(assigned_to.remove(), CancelResult::not_pending) << "it was told of";
}

TEST(IdleTimeouts, RemovedInsideAnotherOnIdleIsNotReportedNorIsItsSuccessor) {
  IdleRig rig(1s);
  Connection first = rig.idle().add(1);
  Connection second = rig.idle().add(2);
  Connection third;
  CancelResult result = CancelResult::not_pending;
  rig.also = [&](std::uint64_t id) {
    if (id == 3) return;
    result = (id == 1 ? second : first).remove_and_wait();
    third = rig.idle().add(3);
    rig.idle().check_invariants();
  };
  rig.advance(1s);
  EXPECT_EQ(rig.told().size(), 1u) << "both were due";
  EXPECT_EQ(result, CancelResult::cancelled);
  rig.advance(1s);
  EXPECT_EQ(rig.told().size(), 2u);
}

TEST(IdleTimeouts, CanBeAddedAgainInsideItsOnIdle) {
  IdleRig rig(1s);
  Connection connection = rig.idle().add(1);
  Connection other = rig.idle().add(2, 90min);
  rig.also = [&](std::uint64_t id) {
    connection.refresh();  // too late, so without effect
    other.refresh();
    connection = rig.idle().add(id + 10);
  };
  for (int i = 0; i < 4; ++i) rig.advance(1s);
  EXPECT_EQ(rig.told(), (Ids{1, 11, 21, 31}));
  EXPECT_EQ(rig.idle().size(), 2u);
}

TEST(IdleTimeouts, RemoveReturnsRunningDuringOnIdleAndWaitsOnlyIfRequested) {
  IdleRig rig(1s);
  Connection connection = rig.idle().add(1);
  Connection waiting = rig.idle().add(2, 2s);
  Gate entered;
  Gate go_on;
  bool done = false;  // not atomic: remove_and_wait orders the accesses
  rig.also = [&](std::uint64_t id) {
    if (id == 1) {
      entered.open();
      go_on.wait();
    }
    if (id == 2) {
      EXPECT_EQ(waiting.remove_and_wait(), CancelResult::running) << "inside: it does not wait";
    }
    done = true;
  };
  rig.clock().advance(1s);
  entered.wait();
  EXPECT_EQ(connection.remove(), CancelResult::running);
  // The place of the connection is free. Its successor is not the connection that is being
  // reported.
  Connection successor = rig.idle().add(3);
  EXPECT_EQ(successor.remove_and_wait(), CancelResult::cancelled) << "without waiting";
  go_on.open();
  rig.settle();
  rig.advance(1s);
  EXPECT_EQ(rig.told(), (Ids{1, 2}));
  EXPECT_TRUE(done);
}

TEST(IdleTimeouts, RemoveAndWaitReturnsAfterOnIdle) {
  IdleRig rig(1s);
  Connection connection = rig.idle().add(1);
  Gate entered;
  Gate go_on;
  bool done = false;
  rig.also = [&](std::uint64_t) {
    entered.open();
    go_on.wait();
    done = true;
  };
  rig.clock().advance(1s);
  entered.wait();
  std::thread remover([&] {
    EXPECT_NE(connection.remove_and_wait(), CancelResult::cancelled);
    EXPECT_TRUE(done);
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  go_on.open();
  remover.join();
  rig.settle();
  EXPECT_EQ(rig.idle().size(), 0u);
}

// ---- the end of the IdleTimeouts ----------------------------------------------------------------

TEST(IdleTimeouts, ConnectionsMayOutliveIt) {
  IdleRig rig(1s);
  Connection connection = rig.idle().add(1);
  Connection destroyed = rig.idle().add(2);
  rig.end_idle();
  rig.advance(1s);
  EXPECT_TRUE(rig.told().empty());
  EXPECT_EQ(rig.scheduler().stats().pending, 0u);
  EXPECT_EQ(connection.remove_and_wait(), CancelResult::not_pending);
}

TEST(IdleTimeouts, ReportsNothingAfterItsSchedulerHasStopped) {
  IdleRig rig(1s);
  Connection connection = rig.idle().add(1);
  rig.scheduler().stop();
  Connection late = rig.idle().add(2, 1ms);
  rig.clock().advance(1s);
  connection.refresh();
  EXPECT_EQ(connection.remove_and_wait(), CancelResult::cancelled);
  EXPECT_TRUE(rig.told().empty());
}

TEST(IdleTimeouts, WaitsForAnOnIdleThatRunsBeforeItIsGone) {
  IdleRig rig(1s);
  const Connection connection = rig.idle().add(1);
  const Connection next = rig.idle().add(2);
  Gate entered;
  Gate go_on;
  bool done = false;
  rig.also = [&](std::uint64_t) {
    entered.open();
    go_on.wait();
    done = true;
  };
  rig.clock().advance(1s);
  entered.wait();
  std::thread destroyer([&] {
    rig.end_idle();
    EXPECT_TRUE(done);
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  go_on.open();
  destroyer.join();
}

TEST(IdleTimeoutsDeathTest, MustNotBeDestroyedInsideItsOnIdle) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto destroy_inside = [] {
    IdleRig rig(1s);
    const Connection connection = rig.idle().add(1);
    rig.also = [&](std::uint64_t) { rig.end_idle(); };
    rig.advance(1s);
  };
  EXPECT_DEATH(destroy_inside(), "running_on_");
}

TEST(IdleTimeoutsDeathTest, RefusesAnEmptyOnIdle) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        Scheduler scheduler;
        const IdleTimeouts idle(scheduler, {.timeout = 1s, .on_idle = nullptr});
      },
      "on_idle_");
}

// ---- a million ----------------------------------------------------------------------------------

/// The bytes that this thread's arena has from malloc. Zero with another allocator, for example
/// under sanitizers.
std::size_t bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(IdleTimeouts, HoldsAMillionConnectionsInThePromisedMemory) {
  constexpr std::size_t kCount = 1'000'000;
  std::size_t told = 0;
  SchedulerRig rig;
  IdleTimeouts idle(rig.scheduler(),
                    {.timeout = 60s, .on_idle = [&told](std::uint64_t) { ++told; }});
  std::vector<Connection> connections;
  connections.reserve(kCount);
  const std::size_t before = bytes_in_use();
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i % 10'000 == 0) rig.advance(500ms);  // uses several slots of the wheel
    connections.push_back(idle.add(i));
  }
  EXPECT_LE((bytes_in_use() - before) / kCount, 32u + 22u + 4u) << "and some growth of arrays";
  static_assert(sizeof(void*) != 8 || sizeof(Connection) == 24);
  for (Connection& connection : connections) connection.refresh();
  rig.advance(60s - 1ms);
  EXPECT_EQ(told, 0u);
  rig.advance(1s);
  EXPECT_EQ(told, kCount);
}

}  // namespace
}  // namespace detent
