// The list of tasks: its order, filters and pages, compared with all tasks read one by one.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

class EngineList : public EngineFixture {
 protected:
  std::vector<TaskSnapshot> list_all(const TaskFilter& filter = {}, std::size_t limit = 100) {
    std::vector<TaskSnapshot> all;
    for (std::optional<Place> at = kListStart; at;) {
      TaskList page = engine_->list(filter, *at, limit).value();
      EXPECT_LE(page.tasks.size(), limit);
      std::ranges::move(page.tasks, std::back_inserter(all));
      at = page.next;
    }
    return all;
  }
  static std::vector<TaskId> ids_of(const std::vector<TaskSnapshot>& tasks) {
    std::vector<TaskId> ids;
    for (const TaskSnapshot& view : tasks) ids.push_back(view.task.id);
    return ids;
  }
  std::vector<TaskId> list_ids(const TaskFilter& filter = {}, std::size_t limit = 100) {
    return ids_of(list_all(filter, limit));
  }
  TaskId add(const std::string& queue, Due due, std::uint32_t priority = kDefaultPriority) {
    ScheduleRequest task = request(queue, due);
    task.rules.priority = priority;
    return engine_->schedule(task).value().task.id;
  }
  void bury_one(const std::string& queue) {
    ASSERT_TRUE(engine_->bury(lease(queue).at(0).lease, "no"));
    settle();
  }
};

TEST_F(EngineList, HasTasksInDueOrderPageByPage) {
  const TaskId late = schedule("a", 3h);
  const TaskId soon = schedule("b", 1min);
  const TaskId now = schedule("a", 0ms);
  const TaskId as_late = schedule("b", wall_now() + 3h);

  const std::vector<TaskId> expected{now, soon, late, as_late};
  EXPECT_EQ(list_ids(), expected);
  EXPECT_EQ(list_ids({}, 1), expected);
  EXPECT_EQ(list_ids({}, 3), expected);
}

TEST_F(EngineList, ADeadTaskHasItsTimeOfDeathAndALeasedTaskItsHolder) {
  for (const char* queue : {"dead", "leased", "free"}) schedule(queue, 0ms);
  advance(5s);
  bury_one("dead");
  const WallTime died_at = wall_now();
  advance(2s);
  ASSERT_TRUE(engine_->lease({.queue = "leased", .worker = "w-1"}));
  for (const TaskSnapshot& view : list_all()) {
    SCOPED_TRACE(view.task.queue);
    EXPECT_EQ(view.died_at.has_value(), view.task.queue == "dead");
    EXPECT_EQ(view.holder.has_value(), view.task.queue == "leased");
    EXPECT_EQ(view.died_at.value_or(died_at), died_at);
    if (!view.holder) continue;
    EXPECT_EQ(view.holder->worker, "w-1");
    EXPECT_EQ(view.holder->since, wall_now());
  }
  const TaskId dead = list_all({.state = TaskState::dead}).at(0).task.id;
  EXPECT_EQ(engine_->get(dead)->died_at, died_at);
}

TEST_F(EngineList, AKeyIsNotLookedForInVeryManyQueues) {
  for (int i = 0; i < 2'000; ++i) {
    ASSERT_TRUE(engine_->schedule(request("q" + std::to_string(i), 1h)));
  }
  ScheduleRequest keyed = request("q0", 1h);
  keyed.key = "k";
  const TaskId id = schedule(keyed);
  EXPECT_EQ(list_ids({.key = "k"}), std::vector{id});
  schedule("one-more", 1h);
  const std::uint64_t reads = store_->read_count();
  EXPECT_EQ(engine_->list({.key = "k"}, kListStart, 9).error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(store_->read_count(), reads);
  EXPECT_EQ(list_ids({.queue = "q0", .key = "k"}), std::vector{id});
  EXPECT_LE(store_->read_count(), reads + 2) << "it looks at the queue that is named";
}

TEST_F(EngineList, ShowsATaskAsReadingItDoes) {
  const TaskId id = schedule("a", 1h);
  const TaskSnapshot view = list_all().at(0);
  const TaskSnapshot read = engine_->get(id).value();
  EXPECT_EQ(view.task, read.task);
  EXPECT_EQ(view.state, read.state);
}

TEST_F(EngineList, HasOnlyTasksThatMatchAllFilters) {
  const WallTime start = wall_now();
  const TaskId a1 = schedule("a", 1min);
  const TaskId a2 = schedule("a", 2min);
  const TaskId b2 = schedule("b", 2min);
  const TaskId a3 = schedule("a", 3min);

  EXPECT_EQ(list_ids({.queue = "a"}), (std::vector{a1, a2, a3}));
  EXPECT_EQ(list_ids({.due_after = start + 2min}), (std::vector{a2, b2, a3}));
  EXPECT_EQ(list_ids({.due_before = start + 2min}), (std::vector{a1}));
  EXPECT_EQ(list_ids({.queue = "a", .due_after = start + 2min, .due_before = start + 3min}),
            (std::vector{a2}));
  EXPECT_TRUE(list_ids({.queue = "none"}).empty());
  EXPECT_TRUE(list_ids({.due_after = start + 4min}).empty());
  EXPECT_TRUE(list_ids({.due_after = start + 3min, .due_before = start + 1min}).empty());
}

TEST_F(EngineList, FiltersByState) {
  set("kept", {.retention = 1h});
  const TaskId cancelled = schedule("kept", 1h);
  ASSERT_TRUE(engine_->cancel(cancelled));
  const TaskId completed = schedule("kept", 0ms);
  complete(lease("kept").at(0).lease);
  const TaskId dead = schedule("a", 0ms);
  bury_one("a");
  const TaskId leased = schedule("a", 0ms);
  lease("a");
  const TaskId ready = schedule("a", 0ms);
  const TaskId far = schedule("a", 1h);

  EXPECT_EQ(list_ids({.state = TaskState::dead}), (std::vector{dead}));
  EXPECT_EQ(list_ids({.state = TaskState::leased}), (std::vector{leased}));
  EXPECT_EQ(list_ids({.state = TaskState::ready}), (std::vector{ready}));
  EXPECT_EQ(list_ids({.state = TaskState::scheduled}), (std::vector{far}));
  EXPECT_EQ(list_ids({.state = TaskState::completed}), (std::vector{completed}));
  EXPECT_EQ(list_ids({.state = TaskState::cancelled}), (std::vector{cancelled}));
  EXPECT_EQ(list_ids({}, 1), (std::vector{dead, leased, ready, far, cancelled, completed}));
}

TEST_F(EngineList, FindsTheTasksThatAKeyStandsFor) {
  ScheduleRequest in_a = request("a", 1h);
  in_a.key = "k";
  ScheduleRequest in_b = request("b", 1min);
  in_b.key = "k";
  const TaskId a = schedule(in_a);
  const TaskId b = schedule(in_b);
  schedule("a", 1h);

  EXPECT_EQ(list_ids({.key = "k"}), (std::vector{b, a}));
  EXPECT_EQ(list_ids({.key = "k"}, 1), (std::vector{b, a}));
  EXPECT_EQ(list_ids({.queue = "a", .key = "k"}), (std::vector{a}));
  EXPECT_TRUE(list_ids({.key = "other"}).empty());
  EXPECT_TRUE(list_ids({.state = TaskState::ready, .key = "k"}).empty());
}

TEST_F(EngineList, ShowsTheChangesOfThisTurn) {
  const TaskId moved = schedule("a", 1h);
  const TaskId gone = schedule("a", 2h);
  const TaskId fresh = add("a", 3h);
  ASSERT_TRUE(engine_->move(moved, 4h));
  ASSERT_TRUE(engine_->cancel(gone));
  EXPECT_EQ(list_ids({}, 1), (std::vector{fresh, moved}));
}

TEST_F(EngineList, HasReadyTasksOnDiskInDueOrderWhateverTheirPriority) {
  options_.max_loaded = 8;
  open_on_a_new_disk();
  std::vector<TaskId> expected;
  for (std::uint32_t i = 0; i < 40; ++i) {
    expected.push_back(add("a", wall_now() - milliseconds{1000 - i}, 7 - i % 3));
  }
  settle();
  ASSERT_LE(engine_->stats().loaded, 20U);
  EXPECT_EQ(list_ids({}, 7), expected);
  EXPECT_EQ(list_ids({.queue = "a", .state = TaskState::ready}, 7), expected);
}

TEST_F(EngineList, ListsATaskThatSpillsDuringTheListOnce) {
  options_.max_loaded = 64;
  open_on_a_new_disk();
  for (int i = 0; i < 40; ++i) add("a", milliseconds{i});
  settle();
  clock_.advance(1s);
  ASSERT_TRUE(engine_->turn());
  TaskList first = engine_->list({}, kListStart, 100).value();  // the dead: none
  first = engine_->list({}, *first.next, 30).value();
  ASSERT_EQ(first.tasks.size(), 30U);
  settle();  // most tasks leave the due order
  std::set<TaskId> seen;
  for (const TaskSnapshot& view : first.tasks) seen.insert(view.task.id);
  for (std::optional<Place> at = first.next; at;) {
    const TaskList page = engine_->list({}, *at, 100).value();
    for (const TaskSnapshot& view : page.tasks) EXPECT_TRUE(seen.insert(view.task.id).second);
    at = page.next;
  }
  EXPECT_EQ(seen.size(), 40U);
}

TEST_F(EngineList, HasTheReadyTasksAfterTheWallClockWasPutBack) {
  const TaskId id = schedule("a", 1s);
  advance(2s);
  clock_.step_wall(-1h);
  settle();
  ASSERT_EQ(state_of(id), TaskState::ready);
  EXPECT_EQ(list_ids({.state = TaskState::ready}), (std::vector{id}));
}

TEST_F(EngineList, ReadsABoundedNumberOfTasksAtATime) {
  for (int i = 0; i < 1'200; ++i) add("crowd", 1h);
  settle();
  const TaskId last = schedule("a", 2h);
  std::size_t steps = 0;
  std::vector<TaskId> found;
  for (std::optional<Place> at = kListStart; at; ++steps) {
    const TaskList page = engine_->list({.queue = "a"}, *at, 100).value();
    for (const TaskSnapshot& view : page.tasks) found.push_back(view.task.id);
    at = page.next;
  }
  EXPECT_EQ(found, (std::vector{last}));
  EXPECT_GE(steps, 3U);
}

TEST_F(EngineList, EndsAStepAtFourMebibytes) {
  ScheduleRequest large = request("a", 1h);
  large.payload = {.kind = Payload::Kind::bytes, .data = std::string(kMaxPayloadBytes, 'x')};
  for (int i = 0; i < 130; ++i) ASSERT_TRUE(engine_->schedule(large));
  settle();
  const TaskList page = engine_->list({.state = TaskState::scheduled}, kListStart, 1'000).value();
  EXPECT_EQ(page.tasks.size(), 64U);
  EXPECT_EQ(list_all({}, 1'000).size(), 130U);
}

TEST_F(EngineList, RefusesToMergeTooManyPriorities) {
  options_.max_loaded = 8;
  open_on_a_new_disk();
  for (std::uint32_t i = 0; i < 600; ++i) add("a", 0ms, i);
  settle();
  const Result<TaskList> page = engine_->list({}, begin_of(Lane::due), 100);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, ErrorCode::resource_exhausted);
  EXPECT_TRUE(engine_->list({.state = TaskState::scheduled}, begin_of(Lane::due), 100));
}

TEST_F(EngineList, PassesOverADamagedRecord) {
  const TaskId first = schedule("a", 1h);
  const WallTime broken_at = wall_now() + 2h;
  const TaskId broken = schedule("a", 2h);
  const TaskId last = schedule("a", 3h);
  disk_->flip_bit({.lane = Lane::due, .at = broken_at, .id = broken}, 100);
  EXPECT_EQ(list_ids(), (std::vector{first, last}));
}

// Random tasks in a tiny memory. The list is compared with all tasks read one by one.
class EngineListModel : public EngineList {
 protected:
  std::string any_queue() { return "q" + std::to_string(rng_.below(4)); }
  milliseconds any_delay() { return milliseconds{rng_.below(3) == 0 ? 0 : rng_.below(60'000)}; }

  void step() {
    switch (rng_.below(10)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        ScheduleRequest task = request(any_queue(), any_delay());
        task.rules.priority = rng_.below(4);
        const TaskId id = engine_->schedule(task).value().task.id;
        ids_.push_back(id);
        touched_.insert(id);
        return;
      }
      case 4: {
        const auto tasks = engine_->lease({.queue = any_queue(), .max = 1 + rng_.below(3)}).value();
        for (const LeasedTask& task : tasks) {
          touched_.insert(task.task.id);
          leases_.emplace_back(task.lease, task.task.id);
        }
        return;
      }
      case 5:
      case 6:
        return end_a_lease();
      case 7:
        return change_a_task();
      case 8:
        clock_.advance(milliseconds{rng_.below(4'000)});
        return settle();
      case 9:
        return settle();
      default:
        return;
    }
  }
  void end_a_lease() {
    if (leases_.empty()) return;
    const auto [lease, id] = leases_[rng_.below(static_cast<std::uint32_t>(leases_.size()))];
    touched_.insert(id);
    switch (rng_.below(4)) {
      case 0:
        return (void)engine_->complete(lease).value();
      case 1:
        return (void)engine_->fail({.lease = lease, .delay = any_delay(), .error = ""}).value();
      case 2:
        return (void)engine_->bury(lease, "").value();
      default:
        return (void)engine_->release(lease, {}, rng_.below(4)).value();
    }
  }
  void change_a_task() {
    if (ids_.empty()) return;
    const TaskId id = ids_[rng_.below(static_cast<std::uint32_t>(ids_.size()))];
    touched_.insert(id);
    if (rng_.below(2) == 0) {
      (void)engine_->move(id, any_delay());
    } else {
      (void)engine_->cancel(id);
    }
  }
  TaskFilter any_filter() {
    TaskFilter filter;
    if (rng_.below(2) == 0) filter.queue = any_queue();
    if (rng_.below(2) == 0) filter.state = static_cast<TaskState>(rng_.below(6));
    const auto any_time = [this] { return wall_now() + milliseconds{rng_.below(80'000)} - 20s; };
    if (rng_.below(4) == 0) filter.due_after = any_time();
    if (rng_.below(4) == 0) filter.due_before = any_time();
    return filter;
  }
  /// All tasks that a filter wants, by id.
  std::map<TaskId, TaskSnapshot> wanted(const TaskFilter& filter) {
    std::map<TaskId, TaskSnapshot> all;
    for (const TaskId id : ids_) {
      Result<TaskSnapshot> view = engine_->get(id);
      if (!view) continue;
      if (filter.queue && view->task.queue != *filter.queue) continue;
      if (filter.state && view->state != *filter.state) continue;
      if (filter.due_after && view->task.due_at < *filter.due_after) continue;
      if (filter.due_before && view->task.due_at >= *filter.due_before) continue;
      all.emplace(id, *std::move(view));
    }
    return all;
  }
  void expect_listed(const TaskFilter& filter, std::size_t limit) {
    std::map<TaskId, TaskSnapshot> expected = wanted(filter);
    const std::vector<TaskSnapshot> listed = list_all(filter, limit);
    std::optional<std::tuple<WallTime, TaskId>> last_live;
    for (const TaskSnapshot& view : listed) {
      const auto found = expected.find(view.task.id);
      ASSERT_NE(found, expected.end()) << to_string(view.task.id) << " twice, or not wanted";
      ASSERT_EQ(view.task, found->second.task);
      ASSERT_EQ(view.state, found->second.state);
      expected.erase(found);
      if (view.task.standing != Standing::live) continue;
      const std::tuple at(view.task.due_at, view.task.id);
      ASSERT_TRUE(!last_live || *last_live < at) << "not in due order";
      last_live = at;
    }
    ASSERT_TRUE(expected.empty()) << "missed " << to_string(expected.begin()->first);
  }
  /// Lists all tasks, with random steps between the pages. Tasks that match the filter before and
  /// after must be listed once.
  void expect_stayers_listed_once(const TaskFilter& filter, std::size_t limit) {
    const std::map<TaskId, TaskSnapshot> before = wanted(filter);
    touched_.clear();
    std::map<TaskId, int> met;
    for (std::optional<Place> at = kListStart; at;) {
      const TaskList page = engine_->list(filter, *at, limit).value();
      for (const TaskSnapshot& view : page.tasks) ++met[view.task.id];
      at = page.next;
      for (std::uint32_t i = rng_.below(4); i > 0; --i) step();
    }
    const std::map<TaskId, TaskSnapshot> after = wanted(filter);
    for (const auto& [id, view] : before) {
      // The task may have become due, or its lease may have expired.
      const auto still = after.find(id);
      if (touched_.contains(id) || still == after.end()) continue;
      if (still->second.state != view.state || still->second.task != view.task) continue;
      ASSERT_EQ(met[id], 1) << to_string(id);
    }
  }

  Rng rng_{0};
  std::vector<TaskId> ids_;
  std::set<TaskId> touched_;
  std::vector<std::pair<LeaseToken, TaskId>> leases_;
};

TEST_F(EngineListModel, ListsEveryTaskThatStaysDuringTheList) {
  const std::uint64_t first = test_seed();
  for (int run = 0; run < test_rounds(6); ++run) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(run);
    SCOPED_TRACE(replay_hint(seed));
    rng_ = Rng(seed);
    ids_.clear();
    leases_.clear();
    options_ = {.window = 10s, .max_loaded = 8 + rng_.below(64)};
    open_on_a_new_disk();
    set("q1", {.retention = 30s});
    for (int i = 0; i < 300 && !HasFailure(); ++i) {
      step();
      if (i % 6 == 0) expect_listed(any_filter(), 1 + rng_.below(20));
      if (i % 10 == 0) expect_stayers_listed_once(any_filter(), 1 + rng_.below(5));
    }
    settle();
    engine_->check_invariants();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace detent
