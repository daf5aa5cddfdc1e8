// The invariants of all parts, by brute force over everything that is stored. For tests.
#include <algorithm>
#include <map>

#include "detent/check.h"
#include "engine/engine.h"

namespace detent {
namespace {

constexpr std::size_t kPageTasks = 1'000;

/// The sums over the stored tasks of a queue.
struct Sums {
  std::uint64_t waiting = 0;
  std::uint64_t dead = 0;
  std::uint64_t bytes = 0;
  std::uint64_t in_ready_lane = 0;
  std::uint64_t in_webhook_lane = 0;
};

}  // namespace

void Engine::check_invariants() {
  DETENT_CHECK(parts_->records.staged().empty() && parts_->records.keys().empty());
  parts_->queues.check_invariants();
  parts_->tasks.check_invariants();
  parts_->hand_out.check_invariants();
  std::size_t in_memory = 0;
  std::map<std::string, Sums> found;
  std::map<DueBin, std::int64_t> bins;
  for (TaskId after{};;) {
    const TaskPage page = parts_->store.read_by_id(after, kPageTasks).value();
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
      if (parts_->window.check(stored)) ++in_memory;
    }
    if (!page.read_to) break;
    after = page.read_to->id;
  }
  DETENT_CHECK(in_memory == parts_->tasks.size());
  const std::vector<DueCount> stored_bins = parts_->store.due_counts().value();
  for (const DueCount& count : stored_bins) {
    DETENT_CHECK(bins[count.bin] == count.count);
    bins.erase(count.bin);
  }
  DETENT_CHECK(bins.empty());
  for (const auto& [name, queue] : parts_->queues) {
    const QueueRecord& record = queue->record;
    const Sums& sums = found[name];
    DETENT_CHECK(record.waiting == sums.waiting && record.dead == sums.dead);
    DETENT_CHECK(record.bytes == sums.bytes && record.in_ready_lane == sums.in_ready_lane);
    DETENT_CHECK(record.in_webhook_lane == sums.in_webhook_lane);
    parts_->window.check(*queue);
    parts_->turns.check(*queue);
  }
  const EngineStats figures = stats();
  QueueStats all;
  for (const QueueStats& of_queue : figures.queues) {
    all.scheduled += of_queue.scheduled;
    all.ready += of_queue.ready;
    all.leased += of_queue.leased;
    all.dead += of_queue.dead;
  }
  DETENT_CHECK(all == figures.all);
}

}  // namespace detent
