#include "engine/window/task_lister.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <tuple>
#include <utility>

namespace detent {
namespace {

/// Records read in one step.
constexpr std::size_t kListReads = 500;
/// Most payload bytes in one step, so that an answer stays within a few HTTP buffers.
constexpr std::size_t kListBytes = std::size_t{4} << 20;
/// The most runs that are merged. Each run costs two reads in each step.
constexpr std::size_t kMostRuns = 500;
/// The most queues in which a key is searched. Other requests wait during the search. A search
/// without a hit reads one block of the store: about ten microseconds if the system has it in
/// memory.
constexpr std::size_t kMostKeyQueues = 2'000;
constexpr TaskId kLastId{~std::uint64_t{0}};

constexpr Place kListEnd = end_of(Lane::ended);

/// The place of a task in the list: its place in the store. For a live task this is always its
/// place in the due order.
Place list_place(Place place) noexcept {
  if (place.lane != Lane::ready) return place;
  return {.lane = Lane::due, .at = place.at, .id = place.id};
}

bool comes_before(Place a, Place b) noexcept {
  const auto part = [](Place place) { return place.lane == Lane::dead ? 0 : 1; };
  return std::tuple(part(a), a) < std::tuple(part(b), b);
}

bool is_wanted(const TaskFilter& filter, const Task& task, TaskState state) noexcept {
  return (!filter.queue || task.queue == *filter.queue) &&
         (!filter.state || state == *filter.state) && (!filter.key || task.key == *filter.key) &&
         (!filter.due_after || task.due_at >= *filter.due_after) &&
         (!filter.due_before || task.due_at < *filter.due_before);
}

}  // namespace

Result<TaskList> TaskLister::list(const TaskFilter& filter, Place after, std::size_t limit) {
  if (filter.queue && !parts_.queues.known(*filter.queue)) return TaskList{};
  using enum TaskState;
  const auto wants = [&filter](std::initializer_list<TaskState> states) {
    return !filter.state || std::ranges::find(states, *filter.state) != states.end();
  };
  if (after.lane == Lane::dead && !filter.key && !wants({dead})) {
    after = begin_of(Lane::due);
  }
  if (after.lane == Lane::due && !filter.key && !wants({scheduled, ready, leased})) {
    after = begin_of(Lane::ended);
  }
  const auto read_stretch = [&]() -> Result<Stretch> {
    if (filter.key) return list_by_key(filter);
    if (after.lane == Lane::dead) return list_dead(filter, after);
    if (after.lane == Lane::ended) return list_ended(after);
    return filter.state == leased ? list_leased(filter, after) : list_live(filter, after);
  };
  ASSIGN_OR_RETURN(Stretch stretch, read_stretch());
  TaskList page = pick(filter, after, std::move(stretch), limit);
  if (page.next && page.next->lane == Lane::ended && !wants({completed, cancelled})) {
    page.next.reset();
  }
  return page;
}

/// The tasks of the stretch that match the filter. If one too many was read, the next step
/// continues behind the last task of the answer.
TaskList TaskLister::pick(const TaskFilter& filter, Place after, Stretch stretch,
                          std::size_t limit) const {
  std::vector<StoredTask>& tasks = stretch.tasks;
  std::erase_if(tasks, [this](const StoredTask& stored) {
    return parts_.records.is_staged(stored.place.id);
  });
  for (const Staging::Change& change : parts_.records.staged().changes()) {
    if (!change.to) continue;
    const Place place = list_place(change.to->place);
    if (comes_before(after, place) && !comes_before(stretch.until, place)) {
      tasks.push_back(*change.to);
    }
  }
  std::ranges::sort(tasks, comes_before,
                    [](const StoredTask& stored) { return list_place(stored.place); });
  TaskList list;
  std::size_t bytes = 0;
  for (StoredTask& stored : tasks) {
    const Place place = list_place(stored.place);
    if (!comes_before(after, place)) continue;
    if (comes_before(stretch.until, place)) break;
    const TaskState state = parts_.tasks.state_of(stored.task);
    if (!is_wanted(filter, stored.task, state)) continue;
    bytes += stored.task.payload.data.size();
    if (list.tasks.size() == limit || (bytes > kListBytes && !list.tasks.empty())) {
      list.next = after;
      return list;
    }
    after = place;
    list.tasks.push_back(parts_.tasks.snapshot(std::move(stored.task), stored.place, state));
  }
  if (!stretch.is_last) list.next = stretch.until;
  return list;
}

/// Calls `look` with the queue of the filter, or with all queues if some queue has such tasks. With
/// very many queues, each look is a cache miss.
template <class Look>
void TaskLister::look_at_queues(const TaskFilter& filter, std::uint64_t QueueCounts::*count,
                                Look look) const {
  if (filter.queue) return look(*parts_.queues.find(*filter.queue));
  if (parts_.queues.counts().*count == 0) return;
  for (const auto& [name, queue] : parts_.queues) look(*queue);
}

/// Lists the dead lane of one queue: the next queue that has dead tasks.
Result<TaskLister::Stretch> TaskLister::list_dead(const TaskFilter& filter, Place after) {
  const Queue* next = nullptr;
  const auto look_at = [&next, after](const Queue& queue) {
    const QueueRecord& record = queue.record;
    if (record.dead == 0 || record.number < after.queue) return;
    if (next == nullptr || record.number < next->record.number) next = &queue;
  };
  look_at_queues(filter, &QueueCounts::dead, look_at);
  if (next == nullptr) return Stretch{.tasks = {}, .until = begin_of(Lane::due)};
  const std::uint32_t number = next->record.number;
  const Place end = end_of(Lane::dead, number);
  ASSIGN_OR_RETURN(TaskPage page, parts_.store.read(std::max(after, begin_of(Lane::dead, number)),
                                                    end, kListReads));
  Stretch stretch{.tasks = std::move(page.tasks), .until = begin_of(Lane::dead, number + 1)};
  if (page.read_to) stretch.until = *page.read_to;
  return stretch;
}

Result<TaskLister::Stretch> TaskLister::list_live(const TaskFilter& filter, Place after) {
  if (filter.due_after) {
    after = std::max(after, Place{.lane = Lane::due, .at = *filter.due_after, .id = {}});
  }
  WallTime last = filter.due_before.value_or(kNeverDue);
  if (filter.state == TaskState::ready) {
    last = std::min(last, std::max(parts_.time.wall_now(), parts_.tasks.latest_ready()));
  }
  const Place end = last_at(Lane::due, last);
  Stretch stretch{.tasks = {}, .until = begin_of(Lane::ended)};
  if (after >= end) return stretch;
  // A ready lane holds tasks that are ready, or have been leased since.
  std::vector<Place> runs;
  if (filter.state != TaskState::scheduled) {
    ASSIGN_OR_RETURN(runs, ready_runs(filter));
  }
  runs.push_back(begin_of(Lane::due));
  const std::size_t reads = std::max<std::size_t>(1, kListReads / runs.size());
  for (const Place& run : runs) {
    Place from = run;
    Place until = run;
    std::tie(from.at, from.id) = std::tie(after.at, after.id);
    std::tie(until.at, until.id) = std::tie(end.at, end.id);
    ASSIGN_OR_RETURN(TaskPage page, parts_.store.read(from, until, reads));
    if (page.read_to) stretch.until = std::min(stretch.until, list_place(*page.read_to));
    std::ranges::move(page.tasks, std::back_inserter(stretch.tasks));
  }
  return stretch;
}

/// The beginning of each run of the ready lanes.
Result<std::vector<Place>> TaskLister::ready_runs(const TaskFilter& filter) {
  std::vector<std::uint32_t> lanes;
  const auto look_at = [&lanes](const Queue& queue) {
    for (const ReadyTasks* const ready : {&queue.ready, &queue.webhooks}) {
      if (ready->in_lane > 0) lanes.push_back(ready->lane);
    }
  };
  look_at_queues(filter, &QueueCounts::in_lanes, look_at);
  std::vector<Place> runs;
  for (const std::uint32_t lane : lanes) {
    const Place end = end_of(Lane::ready, lane);
    for (Place at = begin_of(Lane::ready, lane); at < end;) {
      ASSIGN_OR_RETURN(const TaskPage page, parts_.store.read(at, end, 1));
      if (!page.read_to) break;
      if (runs.size() == kMostRuns) {
        return Error{
            ErrorCode::resource_exhausted,
            "the ready tasks on disk have too many queues and priorities to be listed by due "
            "time: list one queue, or only scheduled tasks",
            "queue"};
      }
      at = begin_of(Lane::ready, lane);
      at.priority = page.read_to->priority;
      runs.push_back(at);
      std::tie(at.at, at.id) = std::tuple(kNeverDue, kLastId);
    }
  }
  return runs;
}

/// All leased tasks are in memory, so this lists them without a walk through the store.
Result<TaskLister::Stretch> TaskLister::list_leased(const TaskFilter& filter, Place after) {
  const auto by_due = [](const LoadedTask* task) { return list_place(task->place); };
  std::vector<const LoadedTask*> leased;
  for (const auto& [token, lease] : parts_.tasks.leases()) {
    const LoadedTask& task = *lease.task;
    if (filter.queue && task.queue->record.queue != *filter.queue) continue;
    if (after < by_due(&task)) leased.push_back(&task);
  }
  Stretch stretch{.tasks = {}, .until = kListEnd, .is_last = true};
  if (leased.size() > kListReads) {
    std::ranges::nth_element(leased, leased.begin() + kListReads, {}, by_due);
    leased.resize(kListReads);
    stretch.until = std::ranges::max(leased, {}, by_due)->place;
    stretch.until = list_place(stretch.until);
    stretch.is_last = false;
  }
  std::vector<Place> places;
  for (const LoadedTask* task : leased) {
    if (!parts_.records.is_staged(task->id())) places.push_back(task->place);
  }
  if (places.empty()) return stretch;
  ASSIGN_OR_RETURN(std::vector<Result<Task>> records, parts_.store.read_at(places));
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (records[i]) stretch.tasks.push_back({.place = places[i], .task = *std::move(records[i])});
  }
  return stretch;
}

Result<TaskLister::Stretch> TaskLister::list_ended(Place after) {
  ASSIGN_OR_RETURN(TaskPage page, parts_.store.read(after, kListEnd, kListReads));
  Stretch stretch{.tasks = std::move(page.tasks), .until = kListEnd, .is_last = !page.read_to};
  if (page.read_to) stretch.until = *page.read_to;
  return stretch;
}

/// Looks the key up in each queue.
Result<TaskLister::Stretch> TaskLister::list_by_key(const TaskFilter& filter) {
  Stretch stretch{.tasks = {}, .until = kListEnd, .is_last = true};
  const auto look_at = [&](const Queue& queue) -> Result<void> {
    if (queue.record.number == 0) return ok();
    ASSIGN_OR_RETURN(
        const std::optional<KeyRecord> record,
        parts_.records.keys().find(queue.record.number, *filter.key, parts_.time.wall_now()));
    if (!record) return ok();
    Result<std::optional<StoredTask>> stored = parts_.records.find(record->id);
    if (!stored && stored.error().code != ErrorCode::data_loss) return std::move(stored).error();
    if (stored && *stored) stretch.tasks.push_back(**std::move(stored));
    return ok();
  };
  if (filter.queue) {
    TRY(look_at(*parts_.queues.find(*filter.queue)));
    return stretch;
  }
  if (parts_.queues.size() > kMostKeyQueues) {
    return Error{ErrorCode::resource_exhausted,
                 "a key can be searched in at most " + std::to_string(kMostKeyQueues) +
                     " queues: name the queue",
                 "queue"};
  }
  for (const auto& [name, queue] : parts_.queues) TRY(look_at(*queue));
  return stretch;
}

}  // namespace detent
