#include "engine/queues/queue_registry.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "detent/check.h"
#include "task/request.h"

namespace detent {

Error no_queue(std::string_view name) {
  const std::string which =
      is_queue_name(name) ? "named '" + std::string(name) + "'" : "with this name";
  return {ErrorCode::not_found, "no queue " + which, "queue"};
}

Queue* QueueRegistry::find(const std::string& name) const noexcept {
  const auto it = queues_.find(name);
  return it == queues_.end() ? nullptr : it->second.get();
}

Result<Queue*> QueueRegistry::known(const std::string& name) const {
  Queue* const queue = find(name);
  if (queue == nullptr || queue->record.number == 0) {
    return no_queue(name);
  }
  return queue;
}

Queue& QueueRegistry::queue_of(const std::string& name) {
  std::unique_ptr<Queue>& queue = queues_[name];
  if (queue == nullptr) {
    queue = std::make_unique<Queue>(name);
    queue->size_place = sizes_.size();
    sizes_.push_back({.tasks = 0, .queue = queue.get()});
    by_name_.emplace(queues_.find(name)->first, queue.get());
  }
  return *queue;
}

Queue& QueueRegistry::restore(const QueueRecord& record) {
  Queue& queue = queue_of(record.queue);
  queue.record = record;
  queue.set_number(record.number);
  note_counts(queue);
  return queue;
}

void QueueRegistry::note_change(Queue& queue) {
  if (queue.record.number == 0) {
    queue.set_number(++last_number_);
    DETENT_CHECK((last_number_ & kWebhookLane) == 0);
  }
  if (!std::exchange(queue.is_changed, true)) changed_.push_back(&queue);
}

void QueueRegistry::remove(Queue& queue) {
  DETENT_CHECK(queue.record.waiting == 0 && queue.record.dead == 0);
  DETENT_CHECK(queue.loaded == 0 && queue.leased == 0);
  const std::string name = queue.record.queue;
  if (std::ranges::find(removed_, name) == removed_.end()) removed_.push_back(name);
  if (std::exchange(queue.is_changed, false)) std::erase(changed_, &queue);
  queue.record = QueueRecord{.queue = name};
  note_counts(queue);
}

void QueueRegistry::forget_if_unused(Queue& queue) {
  if (queue.record.number != 0 || queue.to_serve || queue.serve_at != 0) return;
  if (!queue.waits.empty()) return;
  // Nothing may point at the queue any more.
  DETENT_CHECK(queue.loaded == 0 && !queue.is_changed);
  DETENT_CHECK(!queue.to_deliver && !queue.is_held() && !queue.is_cut());
  DETENT_CHECK(sizes_.at(queue.size_place).queue == &queue);
  sizes_[queue.size_place] = sizes_.back();
  sizes_[queue.size_place].queue->size_place = queue.size_place;
  sizes_.pop_back();
  by_name_.erase(queue.record.queue);
  queues_.erase(queue.record.queue);
}

void QueueRegistry::take_changes(WriteBatch& batch) {
  for (Queue* const queue : std::exchange(changed_, {})) {
    queue->is_changed = false;
    QueueRecord& record = queue->record;
    // The payload bytes of a task whose record could not be read are unknown and still counted.
    if (record.waiting == 0 && record.dead == 0) record.bytes = 0;
    DETENT_CHECK(record.number != 0 && record.number <= last_number_);
    DETENT_CHECK(record.waiting >= queue->loaded);
    DETENT_CHECK(record.waiting >= record.in_ready_lane + record.in_webhook_lane);
    note_counts(*queue);
    batch.queues.push_back(queue->record);
  }
  batch.removed_queues = std::exchange(removed_, {});
}

QueueCounts QueueRegistry::counts() const {
  QueueCounts sums = counted_;
  for (const Queue* const queue : changed_) recount(*queue, sums);
  return sums;
}

std::vector<const Queue*> QueueRegistry::largest(std::size_t most) const {
  std::vector<Sized> sizes = sizes_;
  for (const Queue* const queue : changed_) {
    sizes[queue->size_place].tasks = queue->record.waiting + queue->record.dead;
  }
  if (most < sizes.size()) {
    const auto end = sizes.begin() + static_cast<std::ptrdiff_t>(most);
    std::ranges::nth_element(sizes, end, std::greater{}, &Sized::tasks);
    sizes.erase(end, sizes.end());
  }
  std::vector<const Queue*> queues;
  queues.reserve(sizes.size());
  for (const Sized& one : sizes) queues.push_back(one.queue);
  return queues;
}

/// Replaces the counts of the queue in `sums` by its present counts.
void QueueRegistry::recount(const Queue& queue, QueueCounts& sums) noexcept {
  const QueueRecord& record = queue.record;
  sums.waiting += record.waiting - queue.counted.waiting;
  sums.dead += record.dead - queue.counted.dead;
  sums.in_lanes += record.in_ready_lane + record.in_webhook_lane - queue.counted.in_lanes;
}

void QueueRegistry::note_counts(Queue& queue) noexcept {
  recount(queue, counted_);
  const QueueRecord& record = queue.record;
  queue.counted = {.waiting = record.waiting,
                   .dead = record.dead,
                   .in_lanes = record.in_ready_lane + record.in_webhook_lane};
  sizes_[queue.size_place].tasks = record.waiting + record.dead;
}

void QueueRegistry::check_invariants() const {
  QueueCounts sums;
  DETENT_CHECK(sizes_.size() == queues_.size() && by_name_.size() == queues_.size());
  for (const auto& [name, queue] : queues_) {
    const QueueRecord& record = queue->record;
    const Sized& sized = sizes_.at(queue->size_place);
    DETENT_CHECK(sized.queue == queue.get() && by_name_.at(name) == queue.get());
    DETENT_CHECK(sized.tasks == queue->counted.waiting + queue->counted.dead);
    DETENT_CHECK(record.queue == name && record.number <= last_number_);
    const auto changes = std::ranges::count(changed_, queue.get());
    DETENT_CHECK(changes == (queue->is_changed ? 1 : 0));
    sums.waiting += queue->counted.waiting;
    sums.dead += queue->counted.dead;
    sums.in_lanes += queue->counted.in_lanes;
    if (queue->is_changed) continue;
    DETENT_CHECK(queue->counted.waiting == record.waiting && queue->counted.dead == record.dead);
    DETENT_CHECK(queue->counted.in_lanes == record.in_ready_lane + record.in_webhook_lane);
  }
  DETENT_CHECK(sums.waiting == counted_.waiting && sums.dead == counted_.dead);
  DETENT_CHECK(sums.in_lanes == counted_.in_lanes);
}

}  // namespace detent
