// Long random runs that keep most of the ready tasks on disk. They have many queues, a tiny memory,
// pauses, limits, keys, retention and crashes. The engine is compared with a plain map of the
// expected tasks. This test varies the load, and engine_model_test.cc varies the verbs.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

struct ModelTask {
  std::string queue;
  WallTime due_at{};
  std::uint32_t priority = 0;
  bool is_dead = false;
  std::optional<LeaseToken> lease = {};
  std::string key = {};
  bool webhook = false;  // of its own
};

class EngineBacklog : public EngineFixture {
 protected:
  using Entry = std::pair<const TaskId, ModelTask>;
  static constexpr std::uint32_t kQueues = 6;

  void run(std::uint64_t seed, std::size_t max_loaded, int steps) {
    rng_ = Rng(seed);
    tasks_.clear();
    ended_.clear();
    settings_.clear();
    options_ = {.window = 30s, .max_loaded = max_loaded};
    open_on_a_new_disk();
    for (int i = 0; i < steps && !HasFailure(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      step();
      if (rng_.below(3) == 0) continue;  // several verbs in one turn
      settle();
      // The margin is for tasks that came while no task could leave the memory.
      ASSERT_LE(engine_->stats().loaded, 2 * max_loaded + 32);
      if (i % 8 == 0) engine_->check_invariants();
      compare_counts();
      if (i % 50 == 0) compare_tasks();
    }
    if (!HasFailure()) drain();
  }

  std::string any_queue() { return "q" + std::to_string(rng_.below(kQueues)); }
  Entry* any_task() {
    if (tasks_.empty()) return nullptr;
    return &*std::next(tasks_.begin(), rng_.below(static_cast<std::uint32_t>(tasks_.size())));
  }
  milliseconds delay() {
    const std::uint32_t kind = rng_.below(4);
    return milliseconds{kind < 2 ? 0 : rng_.below(kind == 2 ? 5'000 : 120'000)};
  }
  TaskState state_of_model(const ModelTask& task) const {
    if (task.is_dead) return TaskState::dead;
    if (task.lease) return TaskState::leased;
    return task.due_at <= wall_now() ? TaskState::ready : TaskState::scheduled;
  }
  std::size_t leased_count(const std::string& queue = {}) const {
    return static_cast<std::size_t>(std::ranges::count_if(tasks_, [&](const Entry& entry) {
      return entry.second.lease && (queue.empty() || entry.second.queue == queue);
    }));
  }

  // ---- comparisons, at rest ----

  void compare_counts() {
    std::map<std::string, QueueStats> expected;
    for (const auto& [id, task] : tasks_) {
      QueueStats& stats = expected[task.queue];
      const TaskState state = state_of_model(task);
      if (state == TaskState::scheduled) ++stats.scheduled;
      if (state == TaskState::ready) ++stats.ready;
      if (state == TaskState::leased) ++stats.leased;
      if (state == TaskState::dead) ++stats.dead;
    }
    std::uint64_t seen = 0;
    for (const QueueStats& stats : engine_->stats().queues) {
      const QueueStats& right = expected[stats.queue];
      ASSERT_EQ(stats.scheduled, right.scheduled) << stats.queue;
      ASSERT_EQ(stats.ready, right.ready) << stats.queue;
      ASSERT_EQ(stats.leased, right.leased) << stats.queue;
      ASSERT_EQ(stats.dead, right.dead) << stats.queue;
      seen += stats.scheduled + stats.ready + stats.leased + stats.dead;
    }
    ASSERT_EQ(seen, tasks_.size());
  }
  void compare_tasks() {
    for (const auto& [id, task] : tasks_) {
      const Result<TaskSnapshot> view = engine_->get(id);
      ASSERT_TRUE(view) << "lost: " << to_string(id);
      ASSERT_EQ(to_string(view->state), to_string(state_of_model(task)));
      ASSERT_EQ(view->task.due_at, task.due_at);
      if (!task.key.empty()) {
        ASSERT_EQ(engine_->id_of_key(task.queue, task.key).value(), id);
      }
    }
    for (const TaskId id : ended_) {
      const Result<TaskSnapshot> view = engine_->get(id);
      ASSERT_TRUE(!view || view->task.standing == Standing::completed ||
                  view->task.standing == Standing::cancelled);
    }
  }

  // ---- steps ----

  void step() {
    switch (rng_.below(15)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return do_schedule();
      case 4:
      case 5:
      case 6:
        return do_lease(any_queue());
      case 7:
      case 8:
        return do_end_lease();
      case 9:
        return do_cancel();
      case 10:
        return do_move();
      case 11:
        clock_.advance(milliseconds{rng_.below(4'000)});
        return settle();
      case 12:
        return do_deliver();
      case 13:
        return rng_.below(3) == 0 ? do_set_queue() : do_redrive();
      default:
        if (rng_.below(6) == 0) do_crash();
        if (rng_.below(40) == 0) do_purge();
    }
  }
  void do_schedule() {
    ScheduleRequest asked = request(any_queue(), delay());
    for (std::uint32_t n = 1 + rng_.below(8); n > 0; --n) {
      asked.rules = {.priority = rng_.below(3), .visibility_timeout = 24h};
      asked.key = rng_.below(3) == 0 ? "k" + std::to_string(++last_key_) : "";
      asked.webhook = rng_.below(2) == 0 ? "https://a" : "";
      const TaskSnapshot view = engine_->schedule(asked).value();
      ASSERT_FALSE(view.was_there);
      tasks_[view.task.id] = {.queue = asked.queue,
                              .due_at = wall_now() + std::get<milliseconds>(asked.due),
                              .priority = asked.rules.priority,
                              .key = asked.key,
                              .webhook = !asked.webhook.empty()};
    }
  }
  enum class Taker : std::uint8_t { worker, deliverer };
  Taker taker_of(const ModelTask& task) {
    return task.webhook || settings_[task.queue].webhook ? Taker::deliverer : Taker::worker;
  }
  std::vector<TaskId> ready_in_order(const std::string& queue, Taker taker) {
    std::vector<std::tuple<std::uint32_t, WallTime, TaskId>> ready;
    for (const auto& [id, task] : tasks_) {
      if (task.queue != queue || state_of_model(task) != TaskState::ready) continue;
      if (taker_of(task) != taker) continue;
      ready.emplace_back(task.priority, task.due_at, id);
    }
    std::ranges::sort(ready);
    std::vector<TaskId> ids;
    for (const auto& [priority, due_at, id] : ready) ids.push_back(id);
    return ids;
  }
  /// The number of tasks of the queue that the limits allow to hand out.
  std::size_t allowance(const std::string& queue) {
    const QueueSettings& settings = settings_[queue];
    if (settings.paused) return 0;
    const std::size_t most = most_leased() - leased_count();
    if (!settings.concurrency) return most;
    const std::size_t leased = leased_count(queue);
    return std::min(most,
                    *settings.concurrency - std::min<std::size_t>(leased, *settings.concurrency));
  }
  std::size_t most_leased() const { return std::max<std::size_t>(1, options_.max_loaded / 4); }
  /// If the engine has no work left, the deliverer must get the most urgent tasks of each queue, as
  /// many as the limits allow.
  void do_deliver() {
    clock_.advance(1s);  // a queue that a limit held back is looked at once a second
    settle();
    const std::size_t max = 1 + rng_.below(4);
    std::map<std::string, std::vector<TaskId>> ready;
    std::size_t expected = 0;
    for (std::uint32_t i = 0; i < kQueues; ++i) {
      const std::string queue = "q" + std::to_string(i);
      ready[queue] = ready_in_order(queue, Taker::deliverer);
      expected += std::min(ready[queue].size(), allowance(queue));
    }
    expected = std::min({expected, max, most_leased() - leased_count()});
    const auto deliveries = engine_->lease_deliveries({.max = max}).value();
    ASSERT_EQ(deliveries.size(), expected);
    std::map<std::string, std::size_t> taken;
    for (const Delivery& delivery : deliveries) {
      const Task& task = delivery.leased.task;
      ASSERT_EQ(to_string(task.id), to_string(ready[task.queue].at(taken[task.queue]++)));
      tasks_.at(task.id).lease = delivery.leased.lease;
    }
  }
  /// If the engine has no work left, a lease must return the most urgent tasks, as many as the
  /// limits allow.
  void do_lease(const std::string& queue) {
    settle();
    const std::vector<TaskId> ready = ready_in_order(queue, Taker::worker);
    const std::size_t max = 1 + rng_.below(3);
    const std::size_t expected = std::min({max, ready.size(), allowance(queue)});
    const auto tasks = engine_->lease({.queue = queue, .max = max}).value();
    ASSERT_LE(tasks.size(), expected);
    ASSERT_EQ(tasks.empty(), expected == 0);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      ASSERT_EQ(to_string(tasks[i].task.id), to_string(ready[i])) << "out of order";
      tasks_.at(ready[i]).lease = tasks[i].lease;
    }
  }
  void do_end_lease() {
    std::vector<Entry*> leased;
    for (Entry& entry : tasks_) {
      if (entry.second.lease) leased.push_back(&entry);
    }
    if (leased.empty()) return;
    Entry* const entry = leased[rng_.below(static_cast<std::uint32_t>(leased.size()))];
    ModelTask& task = entry->second;
    const LeaseToken token = *std::exchange(task.lease, std::nullopt);
    const milliseconds by = delay();
    switch (rng_.below(5)) {
      case 0:
      case 1:
        ASSERT_EQ(engine_->complete(token), LeaseOutcome::done);
        ended_.push_back(entry->first);
        tasks_.erase(entry->first);
        return;
      case 2:
        ASSERT_EQ(engine_->fail({.lease = token, .delay = by, .error = "no"}), LeaseOutcome::done);
        task.due_at = wall_now() + by;
        return;
      case 3:
        task.priority = rng_.below(3);
        ASSERT_EQ(engine_->release(token, {}, task.priority), LeaseOutcome::done);
        return;
      default:
        ASSERT_EQ(engine_->bury(token, "no"), LeaseOutcome::dead);
        task.is_dead = true;
    }
  }
  void do_cancel() {
    Entry* const entry = any_task();
    if (entry == nullptr) return;
    const bool is_leased = entry->second.lease.has_value();
    ASSERT_EQ(engine_->cancel(entry->first).has_value(), !is_leased);
    if (is_leased) return;
    ended_.push_back(entry->first);
    tasks_.erase(entry->first);
  }
  void do_move() {
    Entry* const entry = any_task();
    if (entry == nullptr || entry->second.lease) return;
    ModelTask& task = entry->second;
    const bool was_ready = state_of_model(task) == TaskState::ready;
    if (rng_.below(2) == 0) {
      ASSERT_TRUE(engine_->run_now(entry->first));
      if (!was_ready) task.due_at = wall_now();
    } else {
      const milliseconds by = delay() - milliseconds{rng_.below(2) * 3'000};
      task.due_at = wall_now() + by;
      ASSERT_TRUE(engine_->move(entry->first, task.due_at));
    }
    task.is_dead = false;
  }
  void do_redrive() {
    const std::string queue = any_queue();
    const Result<QueueStep> step = engine_->redrive(queue, 1'000);
    if (!step) return;  // it never had a task
    for (auto& [id, task] : tasks_) {
      if (task.queue != queue || !task.is_dead) continue;
      task.is_dead = false;
      task.due_at = wall_now();
    }
  }
  void do_set_queue() {
    const std::string queue = any_queue();
    QueueSettings settings{.paused = rng_.below(4) == 0};
    if (rng_.below(2) == 0) settings.retention = milliseconds{rng_.below(60'000)};
    if (rng_.below(3) == 0) settings.concurrency = 1 + rng_.below(3);
    if (rng_.below(3) == 0) settings.webhook = QueueWebhook{.url = "https://b"};
    ASSERT_TRUE(engine_->set_queue(queue, settings));
    settings_[queue] = settings;
  }
  void do_purge() {
    const std::string queue = any_queue();
    for (std::optional<QueueCursor> from = QueueCursor{}; from;) {
      const Result<QueueStep> step = engine_->purge(queue, 5, *from);
      if (!step) return;  // it never had a task
      from = step->next;
      if (rng_.below(2) == 0) settle();
    }
    for (const auto& [id, task] : tasks_) {
      if (task.queue == queue && !task.lease) ended_.push_back(id);
    }
    std::erase_if(tasks_, [&queue](const Entry& entry) {
      return entry.second.queue == queue && !entry.second.lease;
    });
  }
  void do_crash() {
    settle();
    for (auto& [id, task] : tasks_) task.lease.reset();
    crash_and_open();
    settle();
  }
  /// Leases and completes all tasks, in order.
  void drain() {
    do_crash();
    for (std::uint32_t i = 0; i < kQueues; ++i) {
      settings_["q" + std::to_string(i)] = {};
      ASSERT_TRUE(engine_->set_queue("q" + std::to_string(i), {}));
    }
    advance(2min);
    ASSERT_TRUE(std::ranges::none_of(tasks_, [this](const Entry& e) {
      return state_of_model(e.second) == TaskState::scheduled;
    }));
    std::erase_if(tasks_, [](const Entry& entry) { return entry.second.is_dead; });
    for (std::uint32_t empty = 0; empty < kQueues && !HasFailure();) {
      const std::string queue = "q" + std::to_string(empty);
      rng_.below(2) == 0 ? do_lease(queue) : do_deliver();
      bool is_empty = true;
      for (auto it = tasks_.begin(); it != tasks_.end();) {
        if (it->second.queue == queue) is_empty = false;
        if (!it->second.lease) {
          ++it;
          continue;
        }
        ASSERT_EQ(engine_->complete(*it->second.lease), LeaseOutcome::done);
        it = tasks_.erase(it);
      }
      if (is_empty) ++empty;
    }
    settle();
    if (!HasFailure()) engine_->check_invariants();
    EXPECT_TRUE(tasks_.empty());
  }

  Rng rng_{0};
  std::uint64_t last_key_ = 0;
  std::map<TaskId, ModelTask> tasks_;
  std::vector<TaskId> ended_;
  std::map<std::string, QueueSettings> settings_;
};

TEST_F(EngineBacklog, EveryTaskIsInTheRightPlaceHoweverSmallTheMemory) {
  const std::uint64_t seed = test_seed();
  constexpr std::size_t kMemories[] = {8, 12, 16, 24, 40, 100};
  for (std::uint64_t i = 0; i < 6 && !HasFailure(); ++i) {
    SCOPED_TRACE(replay_hint(seed + i) + ", memory " + std::to_string(kMemories[i]));
    run(seed + i, kMemories[i], test_rounds(2'000));
  }
}

}  // namespace
}  // namespace detent
