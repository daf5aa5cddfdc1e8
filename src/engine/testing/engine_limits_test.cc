// The limits of a queue: the number and bytes of its tasks, hand-outs per second, and leases at a
// time.
#include <map>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

class EngineLimits : public EngineFixture {
 protected:
  static ScheduleRequest of_size(const std::string& queue, std::size_t bytes, Due due = 1h) {
    ScheduleRequest asked = request(queue, due);
    asked.payload = {.kind = Payload::Kind::bytes, .data = std::string(bytes, 'x')};
    return asked;
  }
  /// The request must be refused because of this quota, and the error must name the quota.
  void expect_refused(const ScheduleRequest& asked, const std::string& quota) {
    const Result<TaskSnapshot> refused = engine_->schedule(asked);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
    EXPECT_EQ(refused.error().field, "queue");
    EXPECT_NE(refused.error().message.find(quota), std::string::npos) << refused.error().message;
  }
};

// ---- quotas ----

TEST_F(EngineLimits, TheQuotaOfTasksIsExact) {
  set("q", {.max_tasks = 3});
  schedule_many("q", 3);
  expect_refused(request("q", 0ms), "tasks");
  EXPECT_TRUE(engine_->schedule(request("other", 0ms)));
  settle();
  engine_->check_invariants();
  EXPECT_EQ(view("q").stats.ready, 3u);
}

TEST_F(EngineLimits, TheQuotaHoldsWithinOneTurnAndAfterACrash) {
  set("q", {.max_tasks = 2});
  ASSERT_TRUE(engine_->schedule(request("q", 1h)));
  ASSERT_TRUE(engine_->schedule(request("q", 24h * 100)));
  expect_refused(request("q", 1h), "tasks");
  settle();
  crash_and_open();
  expect_refused(request("q", 1h), "tasks");
}

TEST_F(EngineLimits, CompletingCancellingAndPurgingFreeTheQuota) {
  set("q", {.max_tasks = 2});
  schedule("q", 0ms);
  const TaskId waits = schedule("q", 1h);
  const LeaseToken token = lease("q")[0].lease;
  expect_refused(request("q", 0ms), "tasks");
  EXPECT_EQ(complete(token), LeaseOutcome::done);
  schedule("q", 1h);
  expect_refused(request("q", 0ms), "tasks");
  ASSERT_TRUE(engine_->cancel(waits));
  ASSERT_TRUE(engine_->schedule(request("q", 1h))) << "in the same turn";
  expect_refused(request("q", 0ms), "tasks");
  EXPECT_EQ(purge_all("q"), 2u);
  schedule_many("q", 2);
  expect_refused(request("q", 0ms), "tasks");
}

TEST_F(EngineLimits, LeasedAndDeadTasksCountAgainstTheQuota) {
  set("q", {.max_tasks = 2});
  schedule_many("q", 2);
  ASSERT_EQ(engine_->bury(lease("q")[0].lease, "no"), LeaseOutcome::dead);
  EXPECT_EQ(lease_count("q", 1), 1u);
  expect_refused(request("q", 0ms), "tasks");
  crash_and_open();
  expect_refused(request("q", 0ms), "tasks");
}

TEST_F(EngineLimits, TheQuotaOfBytesIsExact) {
  set("q", {.max_bytes = 100});
  const TaskId first = schedule(of_size("q", 60));
  expect_refused(of_size("q", 41), "bytes");
  schedule(of_size("q", 40));
  expect_refused(of_size("q", 1), "bytes");
  EXPECT_EQ(view("q").bytes, 100u);
  ASSERT_TRUE(engine_->cancel(first));
  expect_refused(of_size("q", 61), "bytes");
  schedule(of_size("q", 60));
  EXPECT_EQ(view("q").bytes, 100u);
}

TEST_F(EngineLimits, ALowerQuotaKeepsTheTasksOfTheQueue) {
  schedule_many("q", 3);
  set("q", {.max_tasks = 1, .max_bytes = 1});
  expect_refused(request("q", 0ms), "tasks");
  for (const LeasedTask& task : lease("q", 3)) EXPECT_EQ(complete(task.lease), LeaseOutcome::done);
  expect_refused(request("q", 0ms), "bytes");
  EXPECT_TRUE(engine_->schedule(of_size("q", 1)));
}

TEST_F(EngineLimits, TasksKeptAfterTheirEndDoNotCountAgainstTheQuota) {
  set("q", {.retention = 1h, .max_tasks = 1});
  ASSERT_TRUE(engine_->cancel(schedule("q", 1h)));
  settle();
  EXPECT_EQ(view("q").bytes, 0u);
  schedule("q", 0ms);
  engine_->check_invariants();
}

TEST_F(EngineLimits, BytesAreThoseOfTheLiveAndDeadTasks) {
  schedule(of_size("q", 10));
  schedule(of_size("q", 200, 0ms));
  schedule(of_size("q", 200, 0ms));
  EXPECT_EQ(view("q").bytes, 410u);
  const std::vector<LeasedTask> leased = lease("q", 2);
  ASSERT_EQ(engine_->bury(leased[0].lease, "a long error does not count"), LeaseOutcome::dead);
  settle();
  EXPECT_EQ(view("q").bytes, 410u);
  EXPECT_EQ(complete(leased[1].lease), LeaseOutcome::done);
  EXPECT_EQ(view("q").bytes, 210u);
  crash_and_open();
  EXPECT_EQ(view("q").bytes, 210u);
  EXPECT_EQ(purge_all("q"), 2u);
  EXPECT_EQ(view("q").bytes, 0u);
}

// ---- rate ----

TEST_F(EngineLimits, ExactlyTheRateIsHandedOutInASecond) {
  set("q", {.rate = 5});
  schedule_many("q", 30);
  for (int second = 0; second < 5; ++second) {
    EXPECT_EQ(lease_count("q", 3), 3u);
    advance(500ms);
    EXPECT_EQ(lease_count("q", 10), 2u);
    advance(499ms);
    EXPECT_EQ(lease_count("q", 10), 0u);
    advance(1ms);
  }
  schedule_many("other", 9);
  EXPECT_EQ(lease_count("other", 9), 9u);
}

TEST_F(EngineLimits, WaitingWorkersAreServedAtTheRateAndTheEngineWakesUpForIt) {
  set("q", {.rate = 4});
  std::vector<LeasedTask> got;
  for (int i = 0; i < 10; ++i) wait_for_one("q", got);
  advance(300ms);
  schedule_many("q", 20);
  EXPECT_EQ(got.size(), 4u);
  advance_to_wakeup();
  EXPECT_EQ(clock_.now().time_since_epoch(), 1s);
  EXPECT_EQ(got.size(), 8u);
  advance_to_wakeup();
  EXPECT_EQ(clock_.now().time_since_epoch(), 2s);
  EXPECT_EQ(got.size(), 10u);
  engine_->check_invariants();
}

TEST_F(EngineLimits, TheRateIsExactInEverySecondWhateverTheWorkersDo) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  set("q", {.rate = 7});
  schedule_many("q", 1'000);
  std::map<MonotonicTime, std::size_t> handed_out;  // by second
  const auto second = [this] { return std::chrono::floor<std::chrono::seconds>(clock_.now()); };
  std::size_t waiting = 0;
  for (int i = 0; i < 1'000; ++i) {
    if (rng.below(2) == 0) {
      handed_out[second()] += lease_count("q", 1 + rng.below(4));
    } else {
      ++waiting;
      engine_->lease_or_wait({.queue = "q"}, 1min, [&](Result<std::vector<LeasedTask>> tasks) {
        --waiting;
        handed_out[second()] += tasks->size();
      });
      settle();
    }
    ASSERT_LE(handed_out[second()], 7u);
    if (waiting > 0) {
      ASSERT_EQ(handed_out[second()], 7u) << "who waits is held back by nothing else";
    }
    advance(milliseconds{rng.below(250)});
  }
}

TEST_F(EngineLimits, RemovingARateServesTheWaitingWorkers) {
  set("q", {.rate = 1});
  schedule_many("q", 3);
  std::vector<LeasedTask> got;
  for (int i = 0; i < 3; ++i) wait_for_one("q", got);
  settle();
  EXPECT_EQ(got.size(), 1u);
  set("q", {});
  EXPECT_EQ(got.size(), 3u);
}

// ---- concurrency ----

TEST_F(EngineLimits, NoMoreThanTheConcurrencyIsLeasedAtATime) {
  set("q", {.concurrency = 2});
  schedule_many("q", 10);
  std::vector<LeasedTask> held = lease("q", 10);
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(lease_count("q", 10), 0u);
  EXPECT_EQ(complete(held[0].lease), LeaseOutcome::done);
  held = lease("q", 10);
  ASSERT_EQ(held.size(), 1u);
  fail(held[0].lease, 1h);
  EXPECT_EQ(lease_count("q", 10), 1u);
}

TEST_F(EngineLimits, EachEndOfALeaseServesTheNextWaitingWorker) {
  set("q", {.visibility_timeout = 10s, .concurrency = 1});
  schedule_many("q", 6);
  std::vector<LeasedTask> got;
  for (int i = 0; i < 6; ++i) wait_for_one("q", got);
  settle();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(complete(got.back().lease), LeaseOutcome::done);
  ASSERT_EQ(got.size(), 2u);
  fail(got.back().lease, 1h);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(engine_->release(got.back().lease, 1h), LeaseOutcome::done);
  settle();
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(engine_->bury(got.back().lease, "no"), LeaseOutcome::dead);
  settle();
  ASSERT_EQ(got.size(), 5u);
  advance(10s);
  ASSERT_EQ(got.size(), 6u) << "the lease of the fifth ran out";
  engine_->check_invariants();
}

TEST_F(EngineLimits, ACrashEndsLeasesForTheConcurrencyToo) {
  set("q", {.concurrency = 1});
  schedule_many("q", 2);
  EXPECT_EQ(lease_count("q", 2), 1u);
  crash_and_open();
  settle();
  EXPECT_EQ(lease_count("q", 2), 1u);
}

TEST_F(EngineLimits, AHigherConcurrencyServesTheWaitingWorkers) {
  set("q", {.concurrency = 1});
  schedule_many("q", 4);
  std::vector<LeasedTask> got;
  for (int i = 0; i < 4; ++i) wait_for_one("q", got);
  settle();
  ASSERT_EQ(got.size(), 1u);
  set("q", {.concurrency = 3});
  EXPECT_EQ(got.size(), 3u);
}

TEST_F(EngineLimits, LeasesTakeAtMostAQuarterOfTheMemoryAndWaitingWorkersAreServedWithinASecond) {
  options_.max_loaded = 16;
  crash_and_open();
  schedule_many("a", 8);
  const std::vector<LeasedTask> held = lease("a", 8);
  ASSERT_EQ(held.size(), 4u);
  schedule_many("b", 1);
  std::vector<LeasedTask> got;
  wait_for_one("b", got);
  settle();
  EXPECT_TRUE(got.empty());
  EXPECT_EQ(complete(held[0].lease), LeaseOutcome::done);
  if (got.empty()) advance_to_wakeup();
  EXPECT_EQ(got.size(), 1u);
  EXPECT_LE(clock_.now().time_since_epoch(), 1s);
}

TEST_F(EngineLimits, RateAndConcurrencyApplyTogether) {
  set("q", {.rate = 3, .concurrency = 2});
  schedule_many("q", 9);
  const std::vector<LeasedTask> held = lease("q", 9);
  ASSERT_EQ(held.size(), 2u);
  for (const LeasedTask& task : held) EXPECT_EQ(complete(task.lease), LeaseOutcome::done);
  EXPECT_EQ(lease_count("q", 9), 1u) << "the third of this second";
  advance(1s);
  EXPECT_EQ(lease_count("q", 9), 1u) << "the second at a time";
}

}  // namespace
}  // namespace detent
