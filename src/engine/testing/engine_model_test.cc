// Random verbs, crashes and times. After each turn, all tasks are compared with a plain map of the
// expected tasks, and the invariants of the engine are checked.
#include <algorithm>
#include <map>
#include <set>
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
  std::uint32_t priority = kDefaultPriority;
  std::uint32_t attempts = 0;
  bool dead = false;
  std::optional<LeaseToken> lease = {};
  WallTime lease_until{};
  bool webhook = false;  // of its own
  std::string key = {};
  WallTime created_at{};
};

constexpr std::uint32_t kMostAttempts = 3;
constexpr const char* kUrl = "https://task.example";
constexpr const char* kQueueUrl = "https://queue.example";

class EngineModel : public EngineFixture {
 protected:
  using Entry = std::pair<const TaskId, ModelTask>;

  void run(std::uint64_t seed, EngineOptions options, int steps) {
    rng_ = Rng(seed);
    tasks_.clear();
    stale_.clear();
    webhook_queues_.clear();
    options_ = options;
    open_on_a_new_disk();
    for (int i = 0; i < steps && !HasFailure(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      step();
      compare();
      if (rng_.below(3) == 0) continue;  // several verbs in one turn
      end_turn();
      engine_->check_invariants();
      compare();
    }
  }

  TaskState state_of_model(const ModelTask& task) const {
    if (task.dead) return TaskState::dead;
    if (task.lease) return TaskState::leased;
    return task.due_at <= wall_now() ? TaskState::ready : TaskState::scheduled;
  }
  void compare() {
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> counts;
    for (const auto& [id, task] : tasks_) {
      ++(task.dead ? counts[task.queue].second : counts[task.queue].first);
      const Result<TaskSnapshot> view = engine_->get(id);
      ASSERT_TRUE(view) << "lost: " << to_string(id);
      ASSERT_EQ(to_string(view->state), to_string(state_of_model(task))) << to_string(id);
      ASSERT_EQ(view->task.due_at, task.due_at);
      ASSERT_EQ(view->task.attempts, task.attempts);
      ASSERT_EQ(view->task.rules.priority, task.priority);
      ASSERT_EQ(view->task.key, task.key);
      if (!task.key.empty()) {
        ASSERT_EQ(engine_->id_of_key(task.queue, task.key).value(), id);
      }
    }
    for (const QueueStats& queue : engine_->stats().queues) {
      ASSERT_EQ(queue.scheduled + queue.ready + queue.leased, counts[queue.queue].first);
      ASSERT_EQ(queue.dead, counts[queue.queue].second);
    }
  }
  /// Ends the expired leases in the model.
  void end_turn() {
    for (auto& [id, task] : tasks_) {
      if (!task.lease || task.lease_until > wall_now()) continue;
      end_attempt(task);
      if (!task.dead) task.due_at = wall_now();
    }
    settle();
  }
  void end_attempt(ModelTask& task) {
    stale_.push_back(*task.lease);
    task.lease.reset();
    task.dead = ++task.attempts >= kMostAttempts;
  }

  void step() {
    switch (rng_.below(19)) {
      case 0:
      case 1:
      case 2:
        return do_schedule();
      case 3:
      case 4:
      case 5:
        return do_lease();
      case 6:
        return do_move();
      case 7:
        return do_run_now();
      case 8:
        return do_cancel();
      case 9:
      case 10:
      case 11:
      case 12:
        return do_with_lease();
      case 13:
        clock_.advance(milliseconds{rng_.below(rng_.below(4) == 0 ? 200'000 : 3'000)});
        return end_turn();
      case 14:
        return do_deliver();
      case 15:
        return rng_.below(2) == 0 ? do_change_queue() : do_change_webhook();
      case 16:
        return rng_.below(2) == 0 ? do_redrive_queue() : do_redrive();
      case 17:
        return do_schedule_over();
      default:
        if (rng_.below(8) == 0) return do_purge();
        if (rng_.below(4) == 0) return do_crash();
    }
  }

  milliseconds delay() { return milliseconds{rng_.below(rng_.below(3) == 0 ? 400'000 : 4'000)}; }
  std::string queue() { return rng_.below(3) == 0 ? "r" : "q"; }
  Entry* any_task() {
    if (tasks_.empty()) return nullptr;
    return &*std::next(tasks_.begin(), rng_.below(static_cast<std::uint32_t>(tasks_.size())));
  }
  Entry* any_leased() {
    std::vector<Entry*> leased;
    for (Entry& entry : tasks_) {
      if (entry.second.lease) leased.push_back(&entry);
    }
    return leased.empty() ? nullptr : leased[rng_.below(static_cast<std::uint32_t>(leased.size()))];
  }
  void revive(ModelTask& task) {
    if (std::exchange(task.dead, false)) task.attempts = 0;
  }

  ScheduleRequest any_request() {
    ScheduleRequest asked = request(queue(), delay());
    asked.rules = {.priority = rng_.below(3),
                   .max_attempts = kMostAttempts,
                   .visibility_timeout = 10s,
                   .backoff = Backoff{.initial = 0ms, .max = 0ms}};
    if (rng_.below(3) == 0) asked.webhook = kUrl;
    return asked;
  }
  void note_new(TaskId id, const ScheduleRequest& asked, WallTime due_at) {
    tasks_[id] = {.queue = asked.queue,
                  .due_at = due_at,
                  .priority = asked.rules.priority,
                  .webhook = !asked.webhook.empty(),
                  .key = asked.key,
                  .created_at = wall_now()};
  }
  void do_schedule() {
    const ScheduleRequest asked = any_request();
    const TaskSnapshot view = engine_->schedule(asked).value();
    note_new(view.task.id, asked, wall_now() + std::get<milliseconds>(asked.due));
  }
  /// Replaces or postpones the task of a key. Two keys a queue, so that most have a task.
  void do_schedule_over() {
    ScheduleRequest asked = any_request();
    asked.key = rng_.below(2) == 0 ? "a" : "b";
    asked.on_key = rng_.below(2) == 0 ? OnKey::replace : OnKey::postpone;
    if (rng_.below(2) == 0) asked.max_wait = delay();
    const auto holder = std::ranges::find_if(tasks_, [&](const Entry& entry) {
      return entry.second.queue == asked.queue && entry.second.key == asked.key;
    });
    const bool is_change = holder != tasks_.end() && !holder->second.lease;
    WallTime due_at = wall_now() + std::get<milliseconds>(asked.due);
    const WallTime first = is_change ? holder->second.created_at : wall_now();
    if (asked.max_wait) due_at = std::min(due_at, first + *asked.max_wait);
    const TaskSnapshot view = engine_->schedule(asked).value();
    ASSERT_EQ(view.was_there, is_change);
    if (!is_change) {
      if (holder != tasks_.end()) holder->second.key.clear();
      return note_new(view.task.id, asked, due_at);
    }
    ASSERT_EQ(view.task.id, holder->first);
    ModelTask& task = holder->second;
    revive(task);
    task.due_at = due_at;
    if (asked.on_key == OnKey::postpone) return;
    task.priority = asked.rules.priority;
    task.webhook = !asked.webhook.empty();
    task.attempts = 0;
  }
  enum class Taker : std::uint8_t { worker, deliverer };
  Taker taker_of(const ModelTask& task) const {
    return task.webhook || webhook_queues_.contains(task.queue) ? Taker::deliverer : Taker::worker;
  }
  /// The ready tasks of a queue for workers or for the deliverer, most urgent first.
  std::vector<TaskId> ready_in_order(const std::string& of, Taker taker) const {
    std::vector<std::tuple<std::uint32_t, WallTime, TaskId>> ready;
    for (const auto& [id, task] : tasks_) {
      if (task.queue != of || state_of_model(task) != TaskState::ready) continue;
      if (taker_of(task) != taker) continue;
      ready.emplace_back(task.priority, task.due_at, id);
    }
    std::ranges::sort(ready);
    std::vector<TaskId> ids;
    for (const auto& [priority, due_at, id] : ready) ids.push_back(id);
    return ids;
  }
  void do_lease() {
    const std::string from = queue();
    // If the engine has no work left, every due task is in memory or in its ready lane. During its
    // work, a due task may still be only in the due order, because memory is full.
    const bool is_at_rest = rng_.below(2) == 0;
    if (is_at_rest) end_turn();
    const std::vector<TaskId> ready = ready_in_order(from, Taker::worker);
    const auto tasks = engine_->lease({.queue = from, .max = 1 + rng_.below(3)});
    for (std::size_t i = 0; is_at_rest && i < tasks->size(); ++i) {
      ASSERT_EQ(to_string((*tasks)[i].task.id), to_string(ready[i])) << "out of order";
    }
    if (is_at_rest && !ready.empty() && may_lease_more()) {
      ASSERT_FALSE(tasks->empty());
    }
    for (const LeasedTask& leased : *tasks) {
      ASSERT_EQ(leased.task.queue, from);
      take(leased, Taker::worker);
    }
  }
  bool may_lease_more() const {
    const auto leased = static_cast<std::size_t>(std::ranges::count_if(
        tasks_, [](const Entry& entry) { return entry.second.lease.has_value(); }));
    return leased < std::max<std::size_t>(1, options_.max_loaded / 4);
  }
  void take(const LeasedTask& leased, Taker taker) {
    ModelTask& task = tasks_.at(leased.task.id);
    ASSERT_EQ(taker_of(task), taker);
    ASSERT_EQ(task.queue, leased.task.queue);
    ASSERT_EQ(state_of_model(task), TaskState::ready);
    ASSERT_EQ(leased.attempt, task.attempts + 1);
    task.lease = leased.lease;
    task.lease_until = leased.lease_until;
  }
  /// If the engine has no work left, each queue must deliver its most urgent tasks, and at least
  /// one task if there is any.
  void do_deliver() {
    clock_.advance(1s);  // a queue that a limit held back is looked at once a second
    end_turn();
    std::map<std::string, std::vector<TaskId>> ready;
    for (const char* const of : {"q", "r"}) ready[of] = ready_in_order(of, Taker::deliverer);
    const bool is_any = !ready["q"].empty() || !ready["r"].empty();
    const bool may_lease = may_lease_more();
    const auto deliveries = engine_->lease_deliveries({.max = 1 + rng_.below(4)}).value();
    ASSERT_EQ(deliveries.empty(), !is_any || !may_lease);
    std::map<std::string, std::size_t> taken;
    for (const Delivery& delivery : deliveries) {
      const Task& task = delivery.leased.task;
      ASSERT_EQ(to_string(task.id), to_string(ready[task.queue].at(taken[task.queue]++)));
      ASSERT_EQ(delivery.url, tasks_.at(task.id).webhook ? kUrl : kQueueUrl);
      take(delivery.leased, Taker::deliverer);
    }
  }
  void do_change_queue() {
    const std::string of = queue();
    const bool has_webhook = webhook_queues_.erase(of) == 0;
    QueueSettings settings;
    if (has_webhook) {
      webhook_queues_.insert(of);
      settings.webhook = QueueWebhook{.url = kQueueUrl};
    }
    ASSERT_TRUE(engine_->set_queue(of, settings));
  }
  void do_change_webhook() {
    Entry* entry = any_task();
    if (entry == nullptr) return;
    auto& [id, task] = *entry;
    const Result<TaskSnapshot> edited = engine_->edit(id, {.webhook = task.webhook ? "" : kUrl});
    ASSERT_EQ(edited.has_value(), !task.lease);
    if (edited) task.webhook = !task.webhook;
  }
  void do_move() {
    Entry* entry = any_task();
    if (entry == nullptr) return;
    auto& [id, task] = *entry;
    const milliseconds by = delay();
    const Due due = rng_.below(2) == 0 ? Due(by) : Due(wall_now() + by - 1s);
    const Result<TaskSnapshot> moved = engine_->move(id, due);
    ASSERT_EQ(moved.has_value(), !task.lease);
    if (!moved) return;
    revive(task);
    task.due_at = std::holds_alternative<WallTime>(due) ? std::get<WallTime>(due) : wall_now() + by;
    ASSERT_EQ(moved->state, state_of_model(task));
  }
  void do_run_now() {
    Entry* entry = any_task();
    if (entry == nullptr) return;
    auto& [id, task] = *entry;
    const bool is_ready = state_of_model(task) == TaskState::ready;
    ASSERT_EQ(engine_->run_now(id).has_value(), !task.lease);
    if (task.lease) return;
    revive(task);
    if (!is_ready) task.due_at = wall_now();
  }
  void do_redrive() {
    Entry* entry = any_task();
    if (entry == nullptr) return;
    ASSERT_EQ(engine_->redrive(entry->first).has_value(), entry->second.dead);
    if (!entry->second.dead) return;
    revive(entry->second);
    entry->second.due_at = wall_now();
  }
  void do_cancel() {
    Entry* entry = any_task();
    if (entry == nullptr) return;
    const bool is_leased = entry->second.lease.has_value();
    ASSERT_EQ(engine_->cancel(entry->first).has_value(), !is_leased);
    if (!is_leased) tasks_.erase(entry->first);
  }
  void do_with_lease() {
    Entry* entry = any_leased();
    if (entry == nullptr || (!stale_.empty() && rng_.below(5) == 0)) return do_with_stale_lease();
    ModelTask& task = entry->second;
    const LeaseToken lease = *task.lease;
    const std::uint32_t priority = rng_.below(3);
    const milliseconds by = delay();
    switch (rng_.below(7)) {
      case 0:
        ASSERT_EQ(engine_->complete(lease), LeaseOutcome::done);
        stale_.push_back(lease);
        tasks_.erase(entry->first);
        return;
      case 1:
        ASSERT_EQ(engine_->fail({.lease = lease, .delay = by, .error = "no"}),
                  task.attempts + 1 < kMostAttempts ? LeaseOutcome::done : LeaseOutcome::dead);
        end_attempt(task);
        if (!task.dead) task.due_at = wall_now() + by;
        return;
      case 2:
        ASSERT_EQ(engine_->bury(lease, "no", priority), LeaseOutcome::dead);
        end_attempt(task);
        task.dead = true;
        task.priority = priority;
        return;
      case 3:
        ASSERT_EQ(engine_->release(lease), LeaseOutcome::done);
        break;
      case 4:
        ASSERT_EQ(engine_->release(lease, {}, priority), LeaseOutcome::done);
        task.priority = priority;
        break;
      case 5:
        ASSERT_EQ(engine_->release(lease, by + 1ms, priority), LeaseOutcome::done);
        task.priority = priority;
        task.due_at = wall_now() + by + 1ms;
        break;
      default:
        ASSERT_EQ(engine_->extend(lease, by + 1ms), LeaseOutcome::done);
        task.lease_until = std::max(task.lease_until, wall_now() + by + 1ms);
        return;
    }
    stale_.push_back(lease);
    task.lease.reset();
  }
  void do_with_stale_lease() {
    if (stale_.empty()) return;
    const LeaseToken lease = stale_[rng_.below(static_cast<std::uint32_t>(stale_.size()))];
    ASSERT_EQ(engine_->complete(lease), LeaseOutcome::conflict);
    ASSERT_EQ(engine_->extend(lease, 1s), LeaseOutcome::conflict);
    ASSERT_EQ(engine_->release(lease, 1s), LeaseOutcome::conflict);
    ASSERT_EQ(engine_->bury(lease, "no"), LeaseOutcome::conflict);
  }
  void do_redrive_queue() {
    const std::string of = queue();
    const std::size_t limit = 1 + rng_.below(4);
    const Result<QueueStep> step = engine_->redrive(of, limit);
    if (!step) return;  // it never had a task
    std::size_t changed = 0;
    std::size_t dead = 0;
    for (auto& [id, task] : tasks_) {
      if (!task.dead || task.queue != of) continue;
      ++dead;
      if (engine_->get(id).value().state == TaskState::dead) continue;
      ++changed;
      revive(task);
      task.due_at = wall_now();
    }
    ASSERT_EQ(step->count, changed);
    ASSERT_EQ(step->count, std::min(limit, dead));
  }
  void do_purge() {
    const std::string of = queue();
    const std::size_t before = tasks_.size();
    std::erase_if(tasks_, [&of](const Entry& entry) {
      return entry.second.queue == of && !entry.second.lease;
    });
    std::size_t purged = 0;
    std::optional<QueueCursor> from = QueueCursor{};
    while (from) {
      const Result<QueueStep> step = engine_->purge(of, 1 + rng_.below(4), *from);
      if (!step) break;  // it never had a task
      purged += step->count;
      from = step->next;
      if (rng_.below(2) == 0) settle();
    }
    ASSERT_EQ(purged, before - tasks_.size());
  }
  void do_crash() {
    end_turn();
    for (auto& [id, task] : tasks_) {
      if (task.lease) stale_.push_back(*task.lease);
      task.lease.reset();
    }
    crash_and_open();
    settle();
  }

  Rng rng_{0};
  std::map<TaskId, ModelTask> tasks_;
  std::vector<LeaseToken> stale_;
  std::set<std::string> webhook_queues_;
};

TEST_F(EngineModel, EveryTaskEqualsTheModel) {
  const std::uint64_t seed = test_seed();
  for (std::uint64_t i = 0; i < 8 && !HasFailure(); ++i) {
    SCOPED_TRACE(replay_hint(seed + i));
    run(seed + i, {.window = 1min}, test_rounds(1'500));
  }
}

TEST_F(EngineModel, EveryTaskEqualsTheModelWithASmallMemory) {
  const std::uint64_t seed = test_seed();
  for (std::uint64_t i = 0; i < 8 && !HasFailure(); ++i) {
    SCOPED_TRACE(replay_hint(seed + i));
    run(seed + i, {.window = 1min, .max_loaded = 4 + i}, test_rounds(1'500));
  }
}

}  // namespace
}  // namespace detent
