// What is in memory: the load window over the due order, and the heads of the ready lanes.
#include <algorithm>
#include <iterator>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"
#include "engine/engine_state.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Tasks loaded in one turn, and at a time from a ready lane.
constexpr std::size_t kPageTasks = 1'000;
/// Most ready tasks spilled in one turn: their records are read and written whole, a few
/// milliseconds that other queues wait.
constexpr std::size_t kSpillTasks = 256;
/// How long after an attempt in vain the window may try to shrink again, and by which part of what
/// is scheduled in it it does.
constexpr milliseconds kShrinkPause{1'000};
constexpr std::size_t kShrinkPart = 4;
constexpr TaskId kLastId{~std::uint64_t{0}};

}  // namespace

// ---- the load window ----

bool Engine::wants_page() const {
  // What is staged is not in the store yet: a page read now would miss it and move past it.
  if (stopped_by_ || !staging_.empty()) return false;
  if (room_for_pages() == 0) return false;
  return more_stored_ || time_.wall_now() + options_.window / 2 >= loaded_to_.at;
}

std::size_t Engine::room_for_pages() const noexcept {
  const std::size_t most =
      std::max<std::size_t>(1, options_.max_loaded * kPageParts / kMemoryParts);
  return most - std::min(most, loaded_.size());
}

/// Gives the scheduled tasks that are due last back to the disk, so that new ones that are due
/// before them have room. What is ready or leased stays, and with it the window up to its places.
void Engine::shrink_window() {
  if (time_.now() < next_shrink_) return;
  Place kept = begin_of(Lane::due);  // the window reaches at least so far
  std::vector<Place> scheduled;
  loaded_.for_each([&](const LoadedTask& task) {
    if (task.state == TaskState::scheduled) {
      scheduled.push_back(task.place);
    } else if (task.place.lane == Lane::due) {
      kept = std::max(kept, task.place);
    }
  });
  std::erase_if(scheduled, [kept](Place place) { return place <= kept; });
  if (scheduled.empty()) {
    // Nothing can go; what comes next waits on disk.
    if (kept < loaded_to_) {
      loaded_to_ = kept;
      more_stored_ = true;
    }
    next_shrink_ = time_.tick_after(kShrinkPause);
    return;
  }
  const auto first_out = scheduled.end() - static_cast<std::ptrdiff_t>(
                                               (scheduled.size() + kShrinkPart - 1) / kShrinkPart);
  std::ranges::nth_element(scheduled, first_out);
  for (auto out = first_out; out != scheduled.end(); ++out) unload(*find_loaded(out->id));
  for (auto in = scheduled.begin(); in != first_out; ++in) kept = std::max(kept, *in);
  loaded_to_ = kept;
  more_stored_ = true;
}

Result<void> Engine::load_page() {
  const WallTime until =
      std::max(WallTime{time_.wall_now() + options_.window}, loaded_to_.at + milliseconds{1});
  const std::size_t limit = std::min(kPageTasks, room_for_pages());
  Result<TaskPage> page = store_.read(loaded_to_, last_at(Lane::due, until), limit);
  if (!page) return stop_acknowledging(std::move(page).error());
  for (const Place& damaged : page->damaged) set_aside(damaged);
  if (stopped_by_) return *stopped_by_;
  for (const StoredTask& stored : page->tasks) {
    load(stored.task, stored.place, dated(stored.task.due_at));
  }
  more_stored_ = page->more;
  if (!page->more) {
    loaded_to_ = {.lane = Lane::due, .at = until, .id = kLastId};
  } else if (!page->tasks.empty()) {
    loaded_to_ = std::max(loaded_to_, page->tasks.back().place);
  }
  return ok();
}

// ---- the ready lanes ----

bool Engine::is_spilled(const Queue& queue) noexcept {
  return queue.record.in_ready_lane > queue.loaded_from_lane;
}

bool Engine::is_at_head(const Queue& queue, const LoadedTask& task) const noexcept {
  return !is_spilled(queue) || task.ready_place() <= queue.head_to;
}

std::size_t Engine::ready_room() const noexcept {
  return std::max<std::size_t>(1, options_.max_loaded * kReadyParts / kMemoryParts);
}

/// The queue with most ready tasks gives up its least urgent ones. Called right before the commit:
/// verbs may read the lane at any time, and must not miss what is staged for it.
void Engine::spill_ready() {
  const std::size_t most = ready_room();
  if (ready_count_ <= most) return;
  Queue* largest = nullptr;
  for (const auto& [name, queue] : queues_) {
    if (largest == nullptr || queue->ready.size() > largest->ready.size()) largest = queue.get();
  }
  spill(*largest, std::min(kSpillTasks, ready_count_ - most));
}

void Engine::spill(Queue& queue, std::size_t count) {
  std::vector<LoadedTask*> out;
  for (auto it = queue.ready.rbegin(); it != queue.ready.rend() && out.size() < count; ++it) {
    out.push_back(*it);
  }
  std::vector<LoadedTask*> to_move;  // the others are in the lane already
  for (LoadedTask* task : out) {
    if (task->place.lane != Lane::ready) to_move.push_back(task);
  }
  Result<std::vector<Result<Task>>> records = read_all(to_move);
  if (!records) return;  // tried again in the next turn
  // What is at its end now was not at the head before, or is no longer.
  const Place first = out.back()->ready_place();
  const Place before_first{.lane = Lane::ready,
                           .queue = first.queue,
                           .priority = first.priority,
                           .at = first.at,
                           .id = TaskId{first.id.value - 1}};
  queue.head_to = is_spilled(queue) ? std::min(queue.head_to, before_first) : before_first;
  for (std::size_t i = 0; i < to_move.size(); ++i) {
    if (!(*records)[i]) {
      std::erase(out, to_move[i]);
      set_aside(*to_move[i]);
      continue;
    }
    const Place to = to_move[i]->ready_place();
    stage_put(queue, to_move[i]->place, {.place = to, .task = *std::move((*records)[i])});
  }
  for (LoadedTask* task : out) unload(*task);
}

/// Loads a page of the ready lane behind its head. What the turn has taken from the lane is still
/// in the page; a leased task may be behind the head and in memory.
Result<void> Engine::load_head(Queue& queue) {
  const Place end = end_of(Lane::ready, queue.record.number);
  ASSIGN_OR_RETURN(const TaskPage page, store_.read(queue.head_to, end, kPageTasks));
  for (const Place& damaged : page.damaged) {
    --queue.record.waiting;
    --queue.record.in_ready_lane;
    note_change(queue);
    set_aside(damaged);
  }
  for (const StoredTask& stored : page.tasks) {
    const TaskId id = stored.place.id;
    if (staging_.find(id) != nullptr || find_loaded(id) != nullptr) continue;
    load(stored.task, stored.place, dated(stored.task.due_at));
  }
  queue.head_to = page.more && !page.tasks.empty() ? page.tasks.back().place : end;
  // Nothing is left behind the head.
  if (!page.more) queue.record.in_ready_lane = queue.loaded_from_lane;
  return ok();
}

}  // namespace detent
