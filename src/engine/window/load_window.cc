#include "engine/window/load_window.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "detent/check.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Tasks read from the due order at a time. This takes some tenths of a millisecond, in which no
/// request is served.
constexpr std::size_t kPageTasks = 128;
/// The most pages that open() loads. Then overdue tasks are in memory at the start, and a long
/// backlog does not make the start slow.
constexpr int kFirstPages = 160;
/// The most turns in a row in which moves to the ready lanes wait for due tasks.
constexpr int kMostWaived = 15;
/// The pause after a failed attempt to shrink the window, and the part of the window's scheduled
/// tasks that each shrink gives back.
constexpr milliseconds kShrinkPause{1'000};
constexpr std::size_t kShrinkPart = 4;
/// The number of tasks in the sample that finds the place where to cut a queue.
constexpr std::uint32_t kCutSamples = 4'096;
/// The number of slots that make_room() visits before it looks whether it has made room.
constexpr std::uint32_t kSweepSlots = 1'024;
constexpr TaskId kLastId{~std::uint64_t{0}};

}  // namespace

// ---- the load window ----

Result<void> LoadWindow::open() {
  opened_at_ = parts_.time.wall_now();
  hold_until_ = parts_.time.tick_after(kMostHold);
  for (int page = 0; page < kFirstPages && wants_page(); ++page) TRY(load_page());
  return ok();
}

bool LoadWindow::holds_hand_outs() const {
  return loaded_to_ < last_at(Lane::due, opened_at_) && parts_.time.now() < hold_until_;
}

bool LoadWindow::wants_page() const {
  // The store does not have the staged records yet. A page read now would miss them and pass their
  // places.
  if (parts_.writer.stopped_by() || !parts_.records.staged().empty()) return false;
  const bool is_urgent = room_for_pages() > 0 && last_call() <= parts_.time.now();
  if (is_out_of_room_ && !has_room_for_many() && !is_urgent) return false;
  return more_stored_ || parts_.time.wall_now() + length_ / 2 >= loaded_to_.at;
}

std::size_t LoadWindow::room_for_pages() const noexcept {
  const std::size_t most = std::max<std::size_t>(1, max_loaded_ * kPageParts / kMemoryParts);
  return most - std::min(most, parts_.tasks.size());
}

/// Whether there is room for a whole page, or for an eighth of a small memory. Without this test,
/// each task that leaves the full memory would cause a read of a page to load one task.
bool LoadWindow::has_room_for_many() const noexcept {
  return room_for_pages() >= std::min(kPageTasks, good_part());
}

LoadWindow::Home LoadWindow::home_of(Queue& queue, const Place& place, const Task& task,
                                     const Deadline& deadline) {
  if (deadline.tick <= parts_.time.now()) return home_of_due(queue, place, task);
  if (place > loaded_to_ || place > queue.cut_to) return Home::due_order;
  if (is_full() && !make_room()) shrink();
  return place <= loaded_to_ && place <= queue.cut_to ? Home::memory : Home::due_order;
}

/// A due task can be handed out immediately, so it must be in memory or in its ready lane. It
/// cannot stay in the due order on disk.
LoadWindow::Home LoadWindow::home_of_due(const Queue& queue, const Place& place, const Task& task) {
  const ReadyTasks& others = queue.ready_of(task);
  const Place ready = others.place_of(task, place);
  if (place > loaded_to_ || would_spill(others, ready)) return Home::ready_lane;
  // Behind a cut, the disk may have due tasks that are more urgent than this task. It goes to
  // memory only if it comes before a ready task that is in memory already.
  if (place > queue.cut_to && !others.is_more_urgent(ready)) return Home::ready_lane;
  const auto has_room = [this] { return !is_full() || make_room(); };
  if (!has_room() && parts_.tasks.size() > parts_.tasks.ready() + parts_.tasks.leases().size()) {
    shrink();
  }
  return is_full() || place > loaded_to_ ? Home::ready_lane : Home::memory;
}

Result<void> LoadWindow::load_page() {
  const WallTime until =
      std::max(WallTime{parts_.time.wall_now() + length_}, loaded_to_.at + milliseconds{1});
  Result<TaskPage> page = parts_.store.read(loaded_to_, last_at(Lane::due, until), kPageTasks);
  if (!page) return parts_.writer.stop(std::move(page).error());
  parts_.tasks.set_aside(page->damaged, nullptr);
  if (parts_.writer.stopped_by()) return *parts_.writer.stopped_by();
  DETENT_CHECK(!page->read_to || *page->read_to > loaded_to_);
  is_out_of_room_ = false;
  Place to{.lane = Lane::due, .at = until, .id = kLastId};
  if (page->read_to) to = *page->read_to;
  for (const auto& [place, task] : page->tasks) {
    DETENT_CHECK(place > loaded_to_);
    Queue& queue = parts_.queues.queue_of(task.queue);
    if (queue.is_cut()) continue;
    const Deadline deadline = parts_.time.dated(task.due_at);
    const bool is_due = deadline.tick <= parts_.time.now();
    const bool is_large = room_for_pages() == 0 && queue.loaded >= good_part();
    const ReadyTasks& others = queue.ready_of(task);
    if ((is_due && would_spill(others, others.place_of(task, place))) ||
        (is_large && (&queue == largest_queue(&Queue::in_memory) || !make_room()))) {
      cut(queue, place);
    } else if (room_for_pages() > 0 || make_room()) {
      parts_.tasks.load(task, place, deadline);
    } else {
      is_out_of_room_ = true;
      to = just_before(place);
      break;
    }
  }
  loaded_to_ = std::max(loaded_to_, to);
  more_stored_ = page->read_to || is_out_of_room_;
  return ok();
}

/// Unloads the scheduled tasks with the latest due times, so that memory has room for new tasks
/// that are due earlier. Ready and leased tasks stay, and the window still covers their places.
void LoadWindow::shrink() {
  if (parts_.time.now() < next_shrink_) return;
  Place kept = begin_of(Lane::due);  // the window reaches at least so far
  std::vector<Place> scheduled;
  parts_.tasks.for_each([&](const LoadedTask& task) {
    if (task.state == TaskState::scheduled) {
      scheduled.push_back(task.place);
    } else if (task.place.lane == Lane::due) {
      kept = std::max(kept, task.place);
    }
  });
  std::erase_if(scheduled, [kept](Place place) { return place <= kept; });
  if (scheduled.empty()) {
    // No task can leave the memory. The window ends at the last task in memory, so later tasks wait
    // on disk.
    if (kept < loaded_to_) {
      loaded_to_ = kept;
      more_stored_ = true;
      drop_cuts();
    }
    next_shrink_ = parts_.time.tick_after(kShrinkPause);
    return;
  }
  const auto first_out = scheduled.end() - static_cast<std::ptrdiff_t>(
                                               (scheduled.size() + kShrinkPart - 1) / kShrinkPart);
  std::ranges::nth_element(scheduled, first_out);
  for (auto out = first_out; out != scheduled.end(); ++out)
    parts_.tasks.unload(*parts_.tasks.find_loaded(out->id));
  for (auto in = scheduled.begin(); in != first_out; ++in) kept = std::max(kept, *in);
  DETENT_CHECK(kept <= loaded_to_);
  loaded_to_ = kept;
  more_stored_ = true;
  drop_cuts();
}

Result<bool> LoadWindow::tend(Moves moves) {
  const bool has_page = wants_page();
  if (has_page) TRY(load_page());
  const Queue* const behind = next_behind_cut();
  if (holds_hand_outs()) moves = Moves::many;  // no worker is served during this
  const bool may_move = moves != Moves::none;
  if (may_move && parts_.tasks.ready() > ready_room()) {
    TRY(spill_ready(moves));
    return true;
  }
  if (behind != nullptr && (may_move || may_load_behind_cut())) {
    TRY(load_behind_cut(behind->cut_to, moves));
    return true;
  }
  return has_page;
}

bool LoadWindow::may_load_behind_cut() const noexcept {
  return parts_.tasks.ready() < ready_room() && room_for_pages() > 0;
}

bool LoadWindow::is_pressed() const {
  return wants_page() || is_short() || (may_load_behind_cut() && next_behind_cut() != nullptr);
}

bool LoadWindow::is_short() const noexcept {
  return is_out_of_room_ || parts_.tasks.ready() > max_loaded_ * kPageParts / kMemoryParts ||
         holds_hand_outs();
}

bool LoadWindow::has_work() const {
  return parts_.tasks.ready() > ready_room() || wants_page() || next_behind_cut() != nullptr;
}

std::optional<Tick> LoadWindow::next_work() const {
  std::optional<Tick> next;
  const auto take_earlier = [&next](Tick tick) { next = std::min(next.value_or(tick), tick); };
  if (!is_out_of_room_ || has_room_for_many()) {
    take_earlier(parts_.time.tick_at(loaded_to_.at - length_ / 2));
  } else if (room_for_pages() > 0) {
    take_earlier(last_call());
  }
  for (const Queue* queue : cut_queues_) take_earlier(parts_.time.tick_at(queue->cut_to.at));
  if (holds_hand_outs()) take_earlier(hold_until_);
  return next;
}

bool LoadWindow::gives_way(Time time) {
  if (time == Time::enough || is_short() || waived_ == kMostWaived) {
    waived_ = 0;
    return false;
  }
  ++waived_;
  return true;
}

// ---- queues that are cut ----

/// A queue can be cut if it has at least this number of tasks in memory.
std::size_t LoadWindow::good_part() const noexcept {
  return std::max<std::size_t>(1, max_loaded_ / kMemoryParts);
}

/// The queue with the highest `count` in memory, found with a sample. Every queue with a large part
/// of the memory is in the sample. Null if the memory is empty.
Queue* LoadWindow::largest_queue(std::size_t (Queue::*count)() const noexcept) {
  Queue* largest = nullptr;
  sample_tasks(kLargestSamples, [&](const LoadedTask& task) {
    if (largest == nullptr || (*task.queue.*count)() > (*largest.*count)()) largest = task.queue;
  });
  return largest;
}

/// Cuts the queue just before `place`, or leaves an earlier cut.
void LoadWindow::cut(Queue& queue, const Place& place) {
  if (!queue.is_cut()) cut_queues_.push_back(&queue);
  queue.cut_to = std::min(queue.cut_to, just_before(place));
  DETENT_CHECK(queue.cut_to.lane == Lane::due);
}

void LoadWindow::forget_cut(Queue& queue) {
  if (std::exchange(queue.cut_to, kNotCut) != kNotCut) std::erase(cut_queues_, &queue);
}

/// Removes the cuts at or behind the end of the window. The window ends there for all queues.
void LoadWindow::drop_cuts() {
  std::erase_if(cut_queues_, [this](Queue* queue) {
    if (queue->cut_to < loaded_to_) return false;
    queue->cut_to = kNotCut;
    return true;
  });
}

/// Unloads scheduled tasks behind the cut of their queue until there is room for one task. If there
/// are no such tasks, it first cuts the queue with the most scheduled tasks. Returns false if no
/// queue has an eighth of the memory in scheduled tasks.
bool LoadWindow::make_room() {
  for (bool is_cut = false;; is_cut = true) {
    while (sweep_at_ < parts_.tasks.slot_limit()) {
      const std::size_t before_sweep = parts_.tasks.size();
      const std::uint32_t end = std::min(sweep_at_ + kSweepSlots, parts_.tasks.slot_limit());
      for (; sweep_at_ < end; ++sweep_at_) {
        LoadedTask* const task = parts_.tasks.at(sweep_at_);
        if (task == nullptr || task->state != TaskState::scheduled) continue;
        if (task->place.lane == Lane::due && task->place > task->queue->cut_to)
          parts_.tasks.unload(*task);
      }
      if (parts_.tasks.size() < before_sweep) return true;
    }
    if (is_cut || !cut_largest()) return false;
    sweep_at_ = 0;
  }
}

/// Cuts the queue with the most scheduled tasks so that its last quarter is behind the cut. A
/// sample finds the queue and the place. Returns false if the queue is too small to be cut.
bool LoadWindow::cut_largest() {
  Queue* const largest = largest_queue(&Queue::scheduled);
  if (largest == nullptr || largest->scheduled() < good_part()) return false;
  std::vector<Place> sample;
  const auto take = [&](const LoadedTask& task) {
    if (task.queue == largest && task.state == TaskState::scheduled) sample.push_back(task.place);
  };
  sample_tasks(kCutSamples, take);
  if (sample.empty()) sample_tasks(kAllSlots, take);
  DETENT_CHECK(!sample.empty());  // the queue has scheduled tasks
  const auto first_out =
      sample.end() - static_cast<std::ptrdiff_t>((sample.size() + kShrinkPart - 1) / kShrinkPart);
  std::ranges::nth_element(sample, first_out);
  cut(*largest, *first_out);
  return true;
}

/// The queue whose tasks behind its cut should be loaded next. Null if there is no such queue.
/// Without room in memory, only queues whose cut has come to the present count, because tasks
/// behind it may be due. Queues with few ready tasks in memory come first, then the queue with the
/// earliest cut.
Queue* LoadWindow::next_behind_cut() const {
  if (parts_.writer.stopped_by() || !parts_.records.staged().empty()) return nullptr;
  const bool has_room = has_room_for_many() && !wants_page();
  const auto rank = [this](const Queue& queue) {
    return std::pair(!has_little_ready(queue), queue.cut_to);
  };
  Queue* next = nullptr;
  for (Queue* const queue : cut_queues_) {
    if (!has_room && parts_.time.tick_at(queue->cut_to.at) > parts_.time.now()) continue;
    if (next == nullptr || rank(*queue) < rank(*next)) next = queue;
  }
  return next;
}

/// Reads a page of the due order from `from`, the cut of a queue. Loads its tasks of all queues
/// that are cut at this place or later, and moves their cuts behind the page. Due tasks that have
/// no room in memory move to their ready lane. If a task that is not due has no room, its queue
/// stays cut just before this task.
Result<void> LoadWindow::load_behind_cut(const Place& from, Moves moves) {
  const Result<TaskPage> page = parts_.store.read(
      from, loaded_to_, parts_.tasks.ready() < ready_room() ? kPageTasks : count_of(moves));
  if (!page) return parts_.writer.stop(page.error());
  parts_.tasks.set_aside(page->damaged, nullptr);
  if (parts_.writer.stopped_by()) return *parts_.writer.stopped_by();
  DETENT_CHECK(!page->read_to || *page->read_to > from);
  std::vector<const Queue*> held_up;
  const auto goes_on = [&](const Queue& queue) {
    return queue.is_cut() && queue.cut_to >= from &&
           std::ranges::find(held_up, &queue) == held_up.end();
  };
  for (const auto& [place, task] : page->tasks) {
    Queue& queue = parts_.queues.queue_of(task.queue);
    if (!goes_on(queue) || parts_.tasks.find_loaded(place.id) != nullptr) continue;
    const Deadline deadline = parts_.time.dated(task.due_at);
    const bool is_due = deadline.tick <= parts_.time.now();
    const bool has_room = room_for_pages() > 0;
    const ReadyTasks& others = queue.ready_of(task);
    const Place ready = others.place_of(task, place);
    if (is_due && (!has_room || would_spill(others, ready))) {
      put_in_lane(queue, place, task, deadline.tick);
    } else if (has_room) {
      parts_.tasks.load(task, place, deadline);
    } else {
      queue.cut_to = just_before(place);
      held_up.push_back(&queue);
    }
  }
  const Place to = page->read_to.value_or(loaded_to_);
  for (Queue* const queue : cut_queues_) {
    if (goes_on(*queue)) queue->cut_to = std::max(queue->cut_to, to);
  }
  drop_cuts();
  return parts_.records.write_moved();
}

}  // namespace detent
