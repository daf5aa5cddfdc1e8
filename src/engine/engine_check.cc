// The invariants of engine.h, by brute force over everything that is stored. For tests.
#include <algorithm>
#include <map>

#include "detent/check.h"
#include "engine/engine.h"
#include "engine/engine_state.h"

namespace detent {
namespace {

constexpr std::size_t kPageTasks = 1'000;

/// What the stored tasks of a queue add up to.
struct Sums {
  std::uint64_t waiting = 0;
  std::uint64_t dead = 0;
  std::uint64_t bytes = 0;
  std::uint64_t in_ready_lane = 0;
  std::uint64_t in_webhook_lane = 0;
};

}  // namespace

void Engine::check_invariants() {
  DETENT_CHECK(staging_.empty() && keys_.empty());
  due_wheel_.check_invariants();
  wait_wheel_.check_invariants();
  loaded_.check_invariants();
  waits_.check_invariants();
  std::size_t in_memory = 0;
  std::map<std::string, Sums> found;
  std::map<DueBin, std::int64_t> bins;
  for (TaskId after{};;) {
    const TaskPage page = store_.read_by_id(after, kPageTasks).value();
    for (const StoredTask& stored : page.tasks) {
      const Task& task = stored.task;
      const bool is_live = task.standing == Standing::live;
      if (is_live || task.standing == Standing::dead) {
        Sums& sums = found[task.queue];
        ++(is_live ? sums.waiting : sums.dead);
        sums.bytes += task.payload.data.size();
        if (stored.place.lane == Lane::ready) {
          ++(task.webhook.empty() ? sums.in_ready_lane : sums.in_webhook_lane);
        }
      }
      if (is_live) ++bins[due_bin_of(task.due_at, task.created_at)];
      if (check_stored(stored)) ++in_memory;
    }
    if (!page.more) break;
    after = page.tasks.back().place.id;
  }
  DETENT_CHECK(in_memory == loaded_.size() && in_memory == loaded_by_id_.size());
  DETENT_CHECK(waits_.size() == wait_wheel_.size() && waits_.size() == waits_by_id_.size());
  const std::vector<DueCount> stored_bins = store_.due_counts().value();
  for (const DueCount& count : stored_bins) {
    DETENT_CHECK(bins[count.bin] == count.count);
    bins.erase(count.bin);
  }
  DETENT_CHECK(bins.empty());
  QueueStats all;
  for (const auto& [name, queue] : queues_) {
    const QueueRecord& record = queue->record;
    const Sums& sums = found[name];
    DETENT_CHECK(record.waiting == sums.waiting && record.dead == sums.dead);
    DETENT_CHECK(record.bytes == sums.bytes && record.in_ready_lane == sums.in_ready_lane);
    DETENT_CHECK(record.in_webhook_lane == sums.in_webhook_lane);
    const QueueStats stats = stats_of(*queue);
    all.scheduled += stats.scheduled;
    all.ready += stats.ready;
    all.leased += stats.leased;
    all.dead += stats.dead;
  }
  DETENT_CHECK(all == stats_of_all());
  check_memory();
}

/// Whether the task is in memory, as it must or must not be.
bool Engine::check_stored(const StoredTask& stored) {
  const Place& place = stored.place;
  const LoadedTask* const loaded = find_loaded(stored.task.id);
  const bool is_loaded = loaded != nullptr;
  Queue& queue = queue_of(stored.task.queue);
  switch (place.lane) {
    case Lane::due:
      DETENT_CHECK(stored.task.standing == Standing::live);
      DETENT_CHECK(is_loaded ? place <= loaded_to_ : place > loaded_to_ || place > queue.cut_to);
      break;
    case Lane::ready:
      DETENT_CHECK(stored.task.standing == Standing::live);
      DETENT_CHECK(place.queue == queue.ready_of(stored.task).lane);
      DETENT_CHECK(place.at == stored.task.due_at && place.priority == stored.task.rules.priority);
      DETENT_CHECK(is_loaded || place > queue.ready_of(stored.task).head_to);
      break;
    case Lane::ended:
      DETENT_CHECK(place > forgotten_to_);
      [[fallthrough]];
    case Lane::dead:
      DETENT_CHECK(!is_loaded && stored.task.standing != Standing::live);
      break;
  }
  if (!is_loaded) return false;
  DETENT_CHECK(loaded->place == place && loaded->due_at == stored.task.due_at);
  DETENT_CHECK(loaded->payload_bytes == stored.task.payload.data.size());
  DETENT_CHECK(loaded->has_webhook != stored.task.webhook.empty());
  return true;
}

/// What is in memory agrees with itself.
void Engine::check_memory() {
  std::size_t ready = 0;
  std::size_t leased = 0;
  std::size_t urgent = 0;
  std::size_t timers = 0;
  loaded_.for_each([&](const LoadedTask& task) {
    const bool has_timer = task.state != TaskState::ready;
    DETENT_CHECK(due_wheel_.is_pending(task.index) == has_timer);
    if (has_timer) ++timers;
  });
  DETENT_CHECK(timers == due_wheel_.size());
  for (const auto& entry : queues_) {
    const Queue* const queue = entry.second.get();
    ready += queue->ready_in_memory();
    leased += queue->leased;
    std::uint64_t loaded = 0;
    loaded_.for_each([&](const LoadedTask& task) {
      if (task.queue == queue) ++loaded;
    });
    DETENT_CHECK(loaded == queue->loaded);
    DETENT_CHECK(std::ranges::count(cut_queues_, queue) == (queue->is_cut() ? 1 : 0));
    DETENT_CHECK(!queue->is_cut() || queue->cut_to < loaded_to_);
    std::size_t of_queue = 0;
    for (const ReadyTasks* const tasks : {&queue->ready, &queue->webhooks}) {
      of_queue += check_ready(*queue, *tasks);
    }
    DETENT_CHECK(queue->urgent == of_queue);
    urgent += queue->urgent;
    check_turn(*queue);
  }
  DETENT_CHECK(urgent == urgent_count_);
  DETENT_CHECK(ready == ready_count_ && leased == leases_.size());
  for (const auto& [number, lease] : leases_) {
    DETENT_CHECK(lease.task->state == TaskState::leased && lease.task->lease == number);
  }
}

/// One order of a queue. Returns how many of it are urgent.
std::size_t Engine::check_ready(const Queue& queue, const ReadyTasks& ready) {
  const bool is_webhooks = &ready == &queue.webhooks;
  std::uint64_t from_lane = 0;
  loaded_.for_each([&](const LoadedTask& task) {
    if (task.queue != &queue || task.has_webhook != is_webhooks) return;
    if (task.place.lane == Lane::ready) ++from_lane;
  });
  DETENT_CHECK(from_lane == ready.loaded_from_lane && from_lane <= ready.in_lane);
  for (const LoadedTask* task : ready.in_memory) {
    DETENT_CHECK(task->state == TaskState::ready && task->queue == &queue);
    DETENT_CHECK(task->has_webhook == is_webhooks);
  }
  return static_cast<std::size_t>(std::ranges::count_if(ready.in_memory, &LoadedTask::is_urgent));
}

/// What goes to webhooks is not forgotten: invariant 3.
void Engine::check_turn(const Queue& queue) {
  const QueueSettings& settings = queue.record.settings;
  const auto in_held = std::ranges::count(held_, &queue);
  const auto in_turn = std::ranges::count(to_deliver_, &queue) + in_held;
  DETENT_CHECK(in_turn == (queue.to_deliver ? 1 : 0));
  DETENT_CHECK(in_held == (queue.is_held ? 1 : 0));
  DETENT_CHECK(!queue.is_held || queue.webhooks.empty());
  const bool awaits_a_lease = settings.concurrency && queue.leased >= *settings.concurrency;
  const bool is_held_back = settings.paused || awaits_a_lease || queue.serve_at != 0;
  DETENT_CHECK(!queue.has_deliveries() || queue.to_deliver || is_held_back);
}

}  // namespace detent
