// Queues: their settings, the defaults that they give to their tasks, and their removal.
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

class EngineQueue : public EngineFixture {};

// ---- settings ----

TEST_F(EngineQueue, PartitionsAreDecidedWhenAQueueIsMade) {
  set("q", {.partitions = 4});
  crash_and_open();
  EXPECT_EQ(view("q").settings.partitions, 4u);
  set("q", {.paused = true, .partitions = 4});
  for (const std::uint32_t partitions : {1u, 3u, 5u}) {
    const Result<void> changed = engine_->set_queue("q", {.partitions = partitions});
    ASSERT_FALSE(changed);
    EXPECT_EQ(changed.error().code, ErrorCode::conflict);
    EXPECT_EQ(changed.error().field, "partitions");
    EXPECT_NE(changed.error().message.find("4 partitions"), std::string::npos);
  }
  EXPECT_TRUE(view("q").settings.paused) << "nothing of it is done";
  schedule("old", 1h);
  EXPECT_EQ(engine_->set_queue("old", {.partitions = 2}).error().code, ErrorCode::conflict);
  ASSERT_TRUE(engine_->remove_queue("q"));
  set("q", {.partitions = 2});
  EXPECT_EQ(view("q").settings.partitions, 2u);
  EXPECT_EQ(engine_->set_queue("r", {.partitions = 0}).error().field, "partitions");
  EXPECT_EQ(engine_->set_queue("r", {.partitions = 257}).error().field, "partitions");
}

// The engine is a shard of a cluster. It has partition 1, with the keys that begin with "b".
TEST_F(EngineQueue, AnEngineAcceptsOnlyTheKeysOfItsPartition) {
  options_.is_here = [](std::string_view queue, std::uint32_t partitions, std::string_view key) {
    if (queue == "home") return true;
    return partitions > 1 && (key.empty() || key.starts_with('b'));
  };
  crash_and_open();
  const auto error_of = [this](const std::string& queue, const std::string& key) {
    const auto made = engine_->schedule({.queue = queue, .key = key});
    return made ? ErrorCode{} : made.error().code;
  };
  EXPECT_EQ(error_of("q", ""), ErrorCode::unavailable) << "not divided, as far as is known here";
  EXPECT_EQ(engine_->set_queue("q", {.paused = true}).error().code, ErrorCode::unavailable);
  EXPECT_EQ(engine_->pause_for("q", 1min).error().code, ErrorCode::unavailable);
  EXPECT_EQ(engine_->queue("q").error().code, ErrorCode::not_found);
  set("q", {.partitions = 2});
  EXPECT_EQ(error_of("q", ""), ErrorCode{});
  EXPECT_EQ(error_of("q", "b1"), ErrorCode{});
  EXPECT_EQ(error_of("q", "a1"), ErrorCode::unavailable);
  EXPECT_EQ(error_of("home", "a1"), ErrorCode{});
  EXPECT_TRUE(engine_->id_of_key("q", "b1"));
  EXPECT_EQ(engine_->id_of_key("q", "b2").error().code, ErrorCode::not_found);
  EXPECT_EQ(engine_->id_of_key("q", "a1").error().code, ErrorCode::unavailable)
      << "it may be there";
  EXPECT_TRUE(engine_->pause_for("q", 1min));
  const Task task{.id = {std::uint64_t{700} << TaskId::kShardBits}, .queue = "r"};
  EXPECT_EQ(engine_->restore(task).error().field, "id");
  settle();
  crash_and_open();
  EXPECT_EQ(error_of("q", "a1"), ErrorCode::unavailable) << "its record says so";
  const Error half_made = engine_->set_queue("new", {.rate = 1}).error();
  EXPECT_NE(half_made.message.find("repeat the PATCH that created the queue"), std::string::npos);
}

TEST_F(EngineQueue, SettingsAreDurableAndReadBackAsTheyWereSet) {
  const QueueSettings settings{.paused = true,
                               .max_attempts = 7,
                               .visibility_timeout = 9s,
                               .backoff = Backoff{.initial = 2s, .max = 3s},
                               .retention = 4h,
                               .key_retention = 11min,
                               .max_tasks = 5,
                               .max_bytes = 600,
                               .rate = 70,
                               .concurrency = 8};
  set("q", settings);
  EXPECT_EQ(view("q").settings, settings);
  crash_and_open();
  engine_->check_invariants();
  EXPECT_EQ(view("q").settings, settings);
  set("q", {});
  crash_and_open();
  EXPECT_EQ(view("q").settings, QueueSettings{}) << "all are set at once";
}

TEST_F(EngineQueue, SettingsThatWereNotCommittedAreGoneAfterACrash) {
  ASSERT_TRUE(engine_->set_queue("q", {.paused = true}));
  EXPECT_TRUE(view("q").settings.paused) << "they hold at once";
  crash_and_open();
  EXPECT_EQ(engine_->queue("q").error().code, ErrorCode::not_found);
}

TEST_F(EngineQueue, AnUnknownQueueIsNotFoundAndAQueueOfATaskHasDefaults) {
  EXPECT_EQ(engine_->queue("q").error().code, ErrorCode::not_found);
  schedule("q", 1h);
  EXPECT_EQ(view("q").settings, QueueSettings{});
  EXPECT_EQ(view("q").stats.queue, "q");
}

TEST_F(EngineQueue, InvalidSettingsAndNamesAreRefused) {
  EXPECT_EQ(engine_->set_queue("q", {.max_attempts = 0}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(engine_->set_queue("q", {.retention = -1ms}).error().field, "retention");
  EXPECT_EQ(engine_->set_queue("q", {.rate = 0}).error().field, "rate");
  EXPECT_EQ(engine_->set_queue("no name", {}).error().field, "queue");
  EXPECT_EQ(engine_->queue("q").error().code, ErrorCode::not_found);
}

TEST_F(EngineQueue, FiguresCanBeLimitedToTheLargestQueues) {
  for (const auto& [name, count] : {std::pair{"c", 3}, {"a", 1}, {"d", 2}, {"b", 4}}) {
    schedule_many(name, count);
  }
  schedule("a", 1h);
  lease("d");
  ASSERT_TRUE(engine_->bury(lease("b").front().lease, ""));
  settle();
  for (const std::size_t most : {0u, 2u, 4u, 9u}) {
    const EngineStats stats = engine_->stats(most);
    EXPECT_EQ(stats.all, (QueueStats{.scheduled = 1, .ready = 8, .leased = 1, .dead = 1}));
    EXPECT_EQ(stats.queue_count, 4u);
    ASSERT_EQ(stats.queues.size(), std::min<std::size_t>(most, 4));
    if (most != 2) continue;
    EXPECT_EQ(stats.queues[0].queue, "b");
    EXPECT_EQ(stats.queues[1].queue, "c");
  }
  EXPECT_EQ(engine_->stats().queues.size(), 4u);
}

// Among thousands of queues, a queue whose tasks are stuck may be small.
TEST_F(EngineQueue, TheQueuesWithTheOldestReadyTasksAreFoundAmongAll) {
  const TaskId stuck = schedule("stuck", 0ms);
  advance(10s);
  for (const char* name : {"a", "b", "c"}) schedule_many(name, 5);
  schedule("far", 1h);
  settle();
  ASSERT_EQ(engine_->oldest_queues(1).size(), 1u);
  EXPECT_EQ(engine_->oldest_queues(1)[0].queue, "stuck");
  EXPECT_EQ(engine_->oldest_queues(1)[0].oldest_ready_age, 10s);
  EXPECT_EQ(engine_->oldest_queues(kAllQueues).size(), 4u);
  EXPECT_EQ(lease_ids("stuck", 9), std::vector<TaskId>{stuck});
  EXPECT_EQ(engine_->oldest_queues(kAllQueues).size(), 3u);
  purge_all("b");
  engine_->check_invariants();
  EXPECT_EQ(engine_->oldest_queues(kAllQueues).size(), 2u);
}

TEST_F(EngineQueue, TellsWhenATaskWasHandedOutLast) {
  schedule_many("q", 2);
  EXPECT_EQ(view("q").stats.last_handed_out_age, std::nullopt);
  complete(lease("q").front().lease);
  advance(3s);
  EXPECT_EQ(view("q").stats.last_handed_out_age, 3s);
  lease("q");
  EXPECT_EQ(view("q").stats.last_handed_out_age, 0s);
}

// ---- paused ----

TEST_F(EngineQueue, APausedQueueAcceptsAndFiresButHandsNothingOut) {
  set("q", {.paused = true});
  const TaskId id = schedule("q", 1s);
  advance(1s);
  EXPECT_EQ(state_of(id), TaskState::ready);
  EXPECT_EQ(lease_count("q", 10), 0u);
  crash_and_open();
  advance(1h);
  EXPECT_EQ(lease_count("q", 10), 0u);
  set("q", {});
  EXPECT_EQ(lease_ids("q", 10), std::vector{id});
}

TEST_F(EngineQueue, APauseLeavesOtherQueuesAndOpenLeasesAlone) {
  schedule("q", 0ms);
  schedule("other", 0ms);
  const LeaseToken held = lease("q")[0].lease;
  set("q", {.paused = true});
  EXPECT_EQ(lease_count("other", 1), 1u);
  EXPECT_EQ(engine_->extend(held, 1min), LeaseOutcome::done);
  EXPECT_EQ(complete(held), LeaseOutcome::done);
}

TEST_F(EngineQueue, ResumingServesTheWaitingWorkers) {
  set("q", {.paused = true});
  schedule_many("q", 2);
  std::vector<LeasedTask> first;
  std::vector<LeasedTask> second;
  std::vector<LeasedTask> third;
  for (std::vector<LeasedTask>* got : {&first, &second, &third}) wait_for_one("q", *got);
  settle();
  EXPECT_TRUE(first.empty());
  set("q", {});
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(second.size(), 1u);
  EXPECT_TRUE(third.empty());
}

// ---- defaults ----

TEST_F(EngineQueue, TheLeaseTimeIsTheRequestsElseTheTasksElseTheQueuesElseAMinute) {
  const auto lease_time = [this](std::optional<milliseconds> asked,
                                 std::optional<milliseconds> own) {
    ScheduleRequest task = request("q", 0ms);
    task.rules.visibility_timeout = own;
    schedule(task);
    const LeasedTask leased =
        engine_->lease({.queue = "q", .visibility_timeout = asked}).value().at(0);
    EXPECT_EQ(complete(leased.lease), LeaseOutcome::done);
    return leased.lease_until - wall_now();
  };
  EXPECT_EQ(lease_time({}, {}), 60s);
  set("q", {.visibility_timeout = 5s});
  EXPECT_EQ(lease_time({}, {}), 5s);
  EXPECT_EQ(lease_time({}, 6s), 6s);
  EXPECT_EQ(lease_time(7s, 6s), 7s);
  EXPECT_EQ(lease_time(7s, {}), 7s);
}

TEST_F(EngineQueue, TheQueuesLeaseTimeIsWhenALeaseRunsOut) {
  set("q", {.visibility_timeout = 5s, .backoff = Backoff{.initial = 0ms, .max = 0ms}});
  const TaskId id = schedule("q", 0ms);
  lease("q");
  advance(5s - 1ms);
  EXPECT_EQ(state_of(id), TaskState::leased);
  advance(1ms);
  EXPECT_EQ(state_of(id), TaskState::ready);
}

TEST_F(EngineQueue, TheMostAttemptsAreTheTasksElseTheQueues) {
  const auto outcomes = [this](std::optional<std::uint32_t> own) {
    ScheduleRequest task = request("q", 0ms);
    task.rules.max_attempts = own;
    schedule(task);
    std::uint32_t attempts = 1;
    while (fail(lease("q").at(0).lease, 0ms) != LeaseOutcome::dead) ++attempts;
    return attempts;
  };
  EXPECT_EQ(outcomes({}), 25u);
  set("q", {.max_attempts = 2});
  EXPECT_EQ(outcomes({}), 2u);
  EXPECT_EQ(outcomes(4), 4u);
  EXPECT_EQ(outcomes(1), 1u);
  crash_and_open();
  EXPECT_EQ(outcomes({}), 2u);
}

TEST_F(EngineQueue, ALaterDefaultAppliesToPresentTasks) {
  const TaskId id = schedule("q", 0ms);
  fail(lease("q")[0].lease, 0ms);
  set("q", {.max_attempts = 2});
  EXPECT_EQ(fail(lease("q")[0].lease, 0ms), LeaseOutcome::dead);
  EXPECT_FALSE(engine_->get(id).value().task.rules.max_attempts) << "the task still leaves it open";
}

TEST_F(EngineQueue, TheBackoffIsTheFailuresElseTheTasksElseTheQueues) {
  const auto rest = [this](std::optional<milliseconds> asked, std::optional<Backoff> own) {
    ScheduleRequest task = request("q", 0ms);
    task.rules.backoff = own;
    const TaskId id = schedule(task);
    fail(lease("q").at(0).lease, asked);
    return engine_->get(id).value().task.due_at - wall_now();
  };
  const auto about = [](milliseconds measured, milliseconds expected) {
    return measured >= expected * 4 / 5 && measured <= expected * 6 / 5;
  };
  EXPECT_TRUE(about(rest({}, {}), 1s));
  set("q", {.backoff = Backoff{.initial = 1min, .max = 1h}});
  EXPECT_TRUE(about(rest({}, {}), 1min));
  EXPECT_TRUE(about(rest({}, Backoff{.initial = 10min, .max = 1h}), 10min));
  EXPECT_EQ(rest(7s, Backoff{.initial = 10min, .max = 1h}), 7s);
}

// ---- removal ----

TEST_F(EngineQueue, AnEmptyQueueIsForgottenWithItsSettingsForGood) {
  set("q", {.paused = true});
  ASSERT_TRUE(engine_->remove_queue("q"));
  EXPECT_EQ(engine_->queue("q").error().code, ErrorCode::not_found);
  settle();
  engine_->check_invariants();
  crash_and_open();
  EXPECT_EQ(engine_->queue("q").error().code, ErrorCode::not_found);
  EXPECT_TRUE(store_->queues().value().empty());
}

TEST_F(EngineQueue, AQueueWithTasksOfAnyKindIsNotRemoved) {
  EXPECT_EQ(engine_->remove_queue("q").error().code, ErrorCode::not_found);
  const TaskId far = schedule("q", 24h * 100);
  EXPECT_EQ(engine_->remove_queue("q").error().code, ErrorCode::conflict);
  ASSERT_TRUE(engine_->run_now(far));
  settle();
  EXPECT_EQ(engine_->remove_queue("q").error().code, ErrorCode::conflict);
  const LeaseToken token = lease("q")[0].lease;
  EXPECT_EQ(engine_->remove_queue("q").error().code, ErrorCode::conflict);
  ASSERT_EQ(engine_->bury(token, "no"), LeaseOutcome::dead);
  settle();
  EXPECT_EQ(engine_->remove_queue("q").error().code, ErrorCode::conflict);
  ASSERT_TRUE(engine_->cancel(far));
  EXPECT_TRUE(engine_->remove_queue("q")) << "in the same turn";
  settle();
  engine_->check_invariants();
  EXPECT_EQ(engine_->queue("q").error().code, ErrorCode::not_found);
}

TEST_F(EngineQueue, TheNumberOfAQueueIsNeverUsedAgain) {
  schedule("other", 1h);
  std::vector<std::uint32_t> numbers;
  for (int round = 0; round < 4; ++round) {
    set("q", {});
    const std::vector<QueueRecord> records = store_->queues().value();
    for (const QueueRecord& record : records) {
      if (record.queue == "q") numbers.push_back(record.number);
    }
    ASSERT_TRUE(engine_->remove_queue("q"));
    if (round % 2 == 0) settle();
    if (round == 2) crash_and_open();
  }
  settle();
  ASSERT_EQ(numbers.size(), 4u);
  EXPECT_TRUE(std::ranges::is_sorted(numbers));
  EXPECT_EQ(std::ranges::adjacent_find(numbers), numbers.end());
}

TEST_F(EngineQueue, AQueueRemovedAndMadeAgainInOneTurnStartsAfresh) {
  set("q", {.paused = true});
  ASSERT_TRUE(engine_->remove_queue("q"));
  const TaskId id = schedule("q", 0ms);
  engine_->check_invariants();
  EXPECT_FALSE(view("q").settings.paused);
  crash_and_open();
  engine_->check_invariants();
  EXPECT_FALSE(view("q").settings.paused);
  EXPECT_EQ(lease_ids("q", 10), std::vector{id});
}

TEST_F(EngineQueue, AQueueMadeAndRemovedInOneTurnLeavesNothing) {
  ASSERT_TRUE(engine_->set_queue("q", {.rate = 3}));
  ASSERT_TRUE(engine_->remove_queue("q"));
  settle();
  engine_->check_invariants();
  EXPECT_TRUE(store_->queues().value().empty());
}

TEST_F(EngineQueue, ARemovedQueueTakesTheKeysOfItsEndedTasksAlong) {
  ScheduleRequest keyed = request("q", 1h);
  keyed.key = "k";
  const TaskId id = schedule(keyed);
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  ASSERT_TRUE(engine_->remove_queue("q"));
  settle();
  const TaskSnapshot view = engine_->schedule(keyed).value();
  EXPECT_FALSE(view.was_there);
  EXPECT_NE(view.task.id, id);
}

TEST_F(EngineQueue, WorkersThatWaitOnARemovedQueueAreServedWhenItComesBack) {
  set("q", {.paused = true});
  std::vector<LeasedTask> got;
  wait_for_one("q", got);
  ASSERT_TRUE(engine_->remove_queue("q"));
  settle();
  engine_->check_invariants();
  schedule("q", 0ms);
  EXPECT_EQ(got.size(), 1u);
}

TEST_F(EngineQueue, AQueueOfWhichATaskIsKeptIsForgottenAndTheTaskGoesInTime) {
  set("q", {.retention = 1h});
  const TaskId id = schedule("q", 1h);
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  if (!engine_->remove_queue("q")) return;
  settle();
  engine_->check_invariants();
  crash_and_open();
  advance(1h + 1min);
  EXPECT_EQ(disk_->record_count(), 0u);
  engine_->check_invariants();
}

}  // namespace
}  // namespace detent
