// The ready lanes: which of their tasks are in memory, and which tasks move to them.
#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "engine/window/load_window.h"

namespace detent {
namespace {

/// Tasks read from a ready lane at a time. This takes some tenths of a millisecond, in which no
/// request is served.
constexpr std::size_t kHeadTasks = 256;

}  // namespace

std::size_t LoadWindow::ready_room() const noexcept {
  return std::max<std::size_t>(1, max_loaded_ * kReadyParts / kMemoryParts);
}

/// The number of ready tasks that each order of a queue may always have in memory, even if the
/// ready tasks of other queues fill their part of the memory.
std::size_t LoadWindow::ready_part() const noexcept {
  return std::max<std::size_t>(1, ready_room() / kMemoryParts);
}

/// Whether one of the two orders of the queue (for workers and for the deliverer) has few ready
/// tasks in memory. Many tasks in one order do not help the receiver of the other order.
bool LoadWindow::has_little_ready(const Queue& queue) const noexcept {
  return queue.ready.in_memory.size() < ready_part() ||
         (queue.had_webhooks && queue.webhooks.in_memory.size() < ready_part());
}

/// Whether a due task at this place would spill immediately if it was loaded.
bool LoadWindow::would_spill(const ReadyTasks& ready, const Place& place) const noexcept {
  if (parts_.tasks.ready() < ready_room() || ready.is_more_urgent(place)) return false;
  return ready.in_memory.size() >= ready_part();
}

void LoadWindow::put_in_lane(Queue& queue, std::optional<Place> from, Task task, Tick due) {
  ReadyTasks& ready = queue.ready_of(task);
  DETENT_CHECK(task.standing == Standing::live);
  DETENT_CHECK(parts_.tasks.find_loaded(task.id) == nullptr);
  const Place to = ready.place_of(task, {.at = task.due_at, .id = task.id});
  ready.put_behind_head(to);
  if (parts_.records.staged().empty()) staged_in_lanes_.clear();
  staged_in_lanes_.push_back(to);
  parts_.tasks.note_fired(task.id, queue, due, parts_.clock.now());
  queue.had_webhooks |= !task.webhook.empty();
  parts_.records.put(queue, from, {.place = to, .task = std::move(task)});
  parts_.turns.want_serving(queue);
}

/// Moves the least urgent ready tasks of one order to its lane. A sample chooses the order with the
/// most ready tasks. Requires: there are ready tasks in memory.
Result<void> LoadWindow::spill_ready(Moves moves) {
  ReadyTasks* largest = nullptr;
  const auto compare = [&largest](const LoadedTask& task) {
    if (task.state != TaskState::ready) return;
    ReadyTasks& ready = task.ready_tasks();
    if (largest == nullptr || ready.in_memory.size() > largest->in_memory.size()) largest = &ready;
  };
  sample_tasks(kLargestSamples, compare);
  if (largest == nullptr) sample_tasks(kAllSlots, compare);
  DETENT_CHECK(largest != nullptr && !largest->in_memory.empty());
  TRY(spill(*largest, std::min(count_of(moves), parts_.tasks.ready() - ready_room())));
  return parts_.records.write_moved();
}

Result<void> LoadWindow::spill(ReadyTasks& ready, std::size_t count) {
  std::vector<LoadedTask*> out;
  const auto& tasks = ready.in_memory;
  for (auto it = tasks.rbegin(); it != tasks.rend() && out.size() < count; ++it) {
    out.push_back(*it);
  }
  std::vector<LoadedTask*> to_move;  // the other tasks of `out` are in the lane already
  for (LoadedTask* task : out) {
    DETENT_CHECK(task->state == TaskState::ready);
    if (task->place.lane != Lane::ready) to_move.push_back(task);
  }
  Result<std::vector<Result<Task>>> records = parts_.records.read_all(to_move);
  if (!records) return parts_.writer.stop(std::move(records).error());
  // The head ends before the most urgent of the tasks that leave the memory.
  ready.put_behind_head(out.back()->ready_place());
  for (std::size_t i = 0; i < to_move.size(); ++i) {
    if (!(*records)[i]) {
      std::erase(out, to_move[i]);
      parts_.tasks.set_aside(*to_move[i]);
      continue;
    }
    const Place to = to_move[i]->ready_place();
    parts_.records.put(*to_move[i]->queue, to_move[i]->place,
                       {.place = to, .task = *std::move((*records)[i])});
  }
  for (LoadedTask* task : out) parts_.tasks.unload(*task);
  return ok();
}

Result<LoadedTask*> LoadWindow::head_of(Queue& queue, ReadyTasks& ready) {
  while (true) {
    if (LoadedTask* const head = ready.head()) return head;
    if (!ready.is_spilled()) return static_cast<LoadedTask*>(nullptr);
    TRY(load_head(queue, ready));
  }
}

/// Loads the next page of the lane. Two kinds of tasks in the page are skipped. Tasks with a staged
/// change may have left the lane in this turn, and the store does not know it yet. Leased tasks may
/// be in memory already, although they are behind the head.
Result<void> LoadWindow::load_head(Queue& queue, ReadyTasks& ready) {
  const Place end = end_of(Lane::ready, ready.lane);
  ASSIGN_OR_RETURN(const TaskPage page, parts_.store.read(ready.head_to, end, kHeadTasks));
  parts_.tasks.set_aside(page.damaged, &queue);
  if (parts_.writer.stopped_by()) return *parts_.writer.stopped_by();
  for (const StoredTask& stored : page.tasks) {
    const TaskId id = stored.place.id;
    if (parts_.records.is_staged(id) || parts_.tasks.find_loaded(id) != nullptr) continue;
    DETENT_CHECK(stored.place.queue == ready.lane && stored.place > ready.head_to);
    parts_.tasks.load(stored.task, stored.place, parts_.time.dated(stored.task.due_at));
  }
  const Place from = std::exchange(ready.head_to, page.read_to.value_or(end));
  DETENT_CHECK(from < ready.head_to);
  load_staged(ready, from);
  // The lane has no more tasks behind the head.
  if (!page.read_to && ready.is_spilled()) {
    ready.in_lane = ready.loaded_from_lane;
    parts_.queues.note_change(queue);
  }
  return ok();
}

/// Loads the tasks that were put into the lane in this turn, if their places are behind `from` and
/// in the head. The store does not have them yet.
void LoadWindow::load_staged(ReadyTasks& ready, const Place& from) {
  for (const Place& place : staged_in_lanes_) {
    if (place.queue != ready.lane || place <= from || place > ready.head_to) continue;
    const Staging::Change* const change = parts_.records.staged().find(place.id);
    if (change == nullptr || !change->to || change->to->place != place) continue;
    if (parts_.tasks.find_loaded(place.id) != nullptr) continue;
    const Task& task = change->to->task;
    parts_.tasks.load(task, place, parts_.time.dated(task.due_at));
  }
}

}  // namespace detent
