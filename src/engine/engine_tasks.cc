// Tasks as the verbs handle them: how they get into memory and leave it, what of them is staged,
// and how their records are read.
#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "task/lifecycle.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kManyBuckets = 10'000;

}  // namespace

Error no_such_task(TaskId id) {
  return Error{ErrorCode::not_found, "there is no task " + to_string(id), "id"};
}

bool Engine::ReadyOrder::operator()(const LoadedTask* a, const LoadedTask* b) const noexcept {
  if (a->priority != b->priority) return a->priority < b->priority;
  if (a->due_at != b->due_at) return a->due_at < b->due_at;
  return a->id() < b->id();
}

// ---- tasks in memory and where they are stored ----

/// A date that has passed asks for now: the time before is not lateness.
Engine::Deadline Engine::deadline_of(const Due& due) const {
  if (const auto* delay = std::get_if<milliseconds>(&due)) {
    // At once, not at the next tick: who asks for it next must find it.
    if (*delay == milliseconds{0}) return {.due_at = time_.wall_now(), .tick = time_.now()};
    return {.due_at = time_.wall_after(*delay), .tick = time_.tick_after(*delay)};
  }
  Deadline deadline = dated(std::get<WallTime>(due));
  deadline.tick = std::max(deadline.tick, time_.now());
  return deadline;
}

Engine::Deadline Engine::dated(WallTime due_at) const {
  return {.due_at = due_at, .tick = time_.tick_at(due_at), .follows_wall = true};
}

void Engine::place(Queue& queue, Task task, std::optional<Place> from, Deadline deadline) {
  task.due_at = deadline.due_at;
  due_counts_.add(task.due_at, task.created_at, +1);
  queue.had_webhooks |= !task.webhook.empty();
  const Place place{.lane = Lane::due, .at = deadline.due_at, .id = task.id};
  if (wants_in_memory(queue, place, task, deadline)) load(task, place, deadline);
  stage_put(queue, from, {.place = place, .task = std::move(task)});
}

void Engine::load(const Task& task, Place place, Deadline deadline) {
  LoadedTask& loaded = loaded_.emplace();
  const bool is_new = loaded_by_id_.emplace(place.id.value, &loaded).second;
  DETENT_CHECK(is_new);
  loaded.place = place;
  loaded.due_at = deadline.due_at;
  loaded.created_at = task.created_at;
  loaded.tick = deadline.tick;
  loaded.queue = &queue_of(task.queue);
  ++loaded.queue->loaded;
  loaded.priority = task.rules.priority;
  loaded.attempts = task.attempts;
  loaded.payload_bytes = static_cast<std::uint32_t>(task.payload.data.size());
  loaded.follows_wall = deadline.follows_wall;
  loaded.has_key = !task.key.empty();
  loaded.has_webhook = !task.webhook.empty();
  loaded.queue->had_webhooks |= loaded.has_webhook;
  if (place.lane == Lane::ready) {
    // It fired before, and nobody took it; how much of that time it was held back is not known.
    loaded.ready_since = std::max(time_.when(loaded.tick), opened_at_);
    ++loaded.ready_tasks().loaded_from_lane;
    ++loaded_from_lanes_;
    enter_ready(loaded);
  } else if (loaded.tick <= time_.now()) {
    become_ready(loaded);
  } else {
    due_wheel_.schedule(loaded.index, loaded.tick);
  }
}

void Engine::become_ready(LoadedTask& task) {
  DETENT_CHECK(next_state(task.state, TaskVerb::become_due) == TaskState::ready);
  const MonotonicTime now = clock_.now();
  note_fired(task.id(), *task.queue, task.tick, now);
  task.ready_since = now;
  task.held_before_ready = held_total(*task.queue, now);
  enter_ready(task);
}

void Engine::note_fired(TaskId id, const Queue& queue, Tick tick, MonotonicTime now) {
  ++counters_.fired;
  tell(id, queue, TaskEvent::ready, TaskState::ready);
  lateness_.record(now - time_.when(tick));
}

void Engine::enter_ready(LoadedTask& task) {
  task.state = TaskState::ready;
  // Most often it is the one due last: looked for there first.
  auto& ready = task.ready_tasks().in_memory;
  ready.insert(ready.end(), &task);
  ++ready_count_;
  latest_ready_ = std::max(latest_ready_, task.due_at);
  if (task.is_urgent()) {
    ++task.queue->urgent;
    ++urgent_count_;
  }
  want_serving(*task.queue);
}

void Engine::leave_ready(LoadedTask& task) {
  task.ready_tasks().in_memory.erase(&task);
  --ready_count_;
  if (!task.is_urgent()) return;
  --task.queue->urgent;
  --urgent_count_;
}

void Engine::unload(LoadedTask& task) {
  Queue& queue = *task.queue;
  if (task.state == TaskState::ready) leave_ready(task);
  if (task.state == TaskState::leased) {
    drop_lease(task);
    want_serving(queue);
  }
  if (task.place.lane == Lane::ready) {
    --task.ready_tasks().loaded_from_lane;
    --loaded_from_lanes_;
  }
  --queue.loaded;
  due_wheel_.cancel(task.index);
  loaded_by_id_.erase(task.id().value);
  loaded_.erase(task.index);
  // A map keeps the buckets of its fullest time. Seldom enough to cost O(1) a task.
  const std::size_t buckets = loaded_by_id_.bucket_count();
  if (buckets > kManyBuckets && loaded_by_id_.size() < buckets / 8) loaded_by_id_.rehash(0);
}

Result<void> Engine::remove(LoadedTask& loaded, End end) {
  Queue& queue = *loaded.queue;
  if (loaded.has_key || queue.record.settings.retention > milliseconds{0}) {
    ASSIGN_OR_RETURN(Task task, read(loaded));
    return remove(
        {.stored = {loaded.place, std::move(task)}, .state = loaded.state, .loaded = &loaded}, end);
  }
  uncount(queue, loaded.id(), loaded.due_at, loaded.created_at, loaded.payload_bytes);
  stage_erase(queue, loaded.place);
  tell_end(loaded.id(), queue, end);
  unload(loaded);
  return ok();
}

Result<void> Engine::remove(Found found, End end) {
  Task& task = found.stored.task;
  Queue& queue = queue_of(task.queue);
  const QueueSettings& settings = queue.record.settings;
  const WallTime now = time_.wall_now();
  if (!task.key.empty()) {
    TRY(keys_.expire(queue.record.number, task.key, task.id, now + settings.key_retention));
  }
  tell_end(task.id, queue, end);
  if (task.standing == Standing::dead) {
    --queue.record.dead;
    queue.record.bytes -= task.payload.data.size();
  } else {
    uncount(queue, task.id, task.due_at, task.created_at, task.payload.data.size());
  }
  if (settings.retention > milliseconds{0}) {
    task.standing = end == End::completed ? Standing::completed : Standing::cancelled;
    const Place kept{.lane = Lane::ended, .at = now + settings.retention, .id = task.id};
    stage_put(queue, found.stored.place, {.place = kept, .task = std::move(task)});
  } else {
    stage_erase(queue, found.stored.place);
  }
  if (found.loaded != nullptr) unload(*found.loaded);
  return ok();
}

void Engine::tell_end(TaskId id, const Queue& queue, End end) {
  switch (end) {
    case End::completed:
      return tell(id, queue, TaskEvent::completed, TaskState::completed);
    case End::cancelled:
      return tell(id, queue, TaskEvent::cancelled, TaskState::cancelled);
  }
}

void Engine::stage_put(Queue& queue, std::optional<Place> from, StoredTask to) {
  if (from && from->lane == Lane::ready) --queue.ready_at(*from).in_lane;
  if (to.place.lane == Lane::ready) ++queue.ready_at(to.place).in_lane;
  // The wall clock has been set back.
  if (to.place.lane == Lane::ended && to.place <= forgotten_to_) {
    forgotten_to_ = begin_of(Lane::ended);
  }
  note_change(queue);
  staging_.put(from, std::move(to));
}

void Engine::stage_erase(Queue& queue, Place from) {
  if (from.lane == Lane::ready) --queue.ready_at(from).in_lane;
  note_change(queue);
  staging_.erase(from);
}

void Engine::uncount(Queue& queue, TaskId id, WallTime due_at, WallTime created_at,
                     std::size_t payload_bytes) {
  schedules_.task_ended(id);
  due_counts_.add(due_at, created_at, -1);
  --queue.record.waiting;
  queue.record.bytes -= payload_bytes;
}

// ---- records ----

Result<Task> Engine::read(LoadedTask& loaded) {
  ASSIGN_OR_RETURN(std::vector<Result<Task>> records, read_all({&loaded}));
  if (!records.front()) set_aside(loaded);
  return std::move(records.front());
}

Result<std::vector<Result<Task>>> Engine::read_all(const std::vector<LoadedTask*>& tasks) {
  std::vector<Place> places;
  for (const LoadedTask* task : tasks) {
    if (staging_.find(task->id()) == nullptr) places.push_back(task->place);
  }
  std::vector<Result<Task>> stored;
  if (!places.empty()) {
    ASSIGN_OR_RETURN(stored, store_.read_at(places));
    DETENT_CHECK(stored.size() == places.size());
  }
  std::vector<Result<Task>> records;
  records.reserve(tasks.size());
  auto next_stored = stored.begin();
  for (const LoadedTask* task : tasks) {
    if (const Staging::Change* change = staging_.find(task->id())) {
      DETENT_CHECK(change->to.has_value());
      records.emplace_back(change->to->task);
    } else {
      records.push_back(std::move(*next_stored++));
    }
  }
  return records;
}

Result<std::optional<StoredTask>> Engine::find_stored(TaskId id) {
  if (const Staging::Change* change = staging_.find(id)) return change->to;
  return store_.find(id);
}

Result<Engine::Found> Engine::find(TaskId id) {
  if (LoadedTask* loaded = find_loaded(id)) {
    const Place place = loaded->place;
    ASSIGN_OR_RETURN(Task task, read(*loaded));
    return Found{.stored = {place, std::move(task)}, .state = loaded->state, .loaded = loaded};
  }
  ASSIGN_OR_RETURN(std::optional<StoredTask> stored, find_stored(id));
  if (!stored) return no_such_task(id);
  const TaskState state = state_on_disk(stored->task);
  return Found{.stored = *std::move(stored), .state = state};
}

TaskState Engine::state_on_disk(const Task& task) const {
  switch (task.standing) {
    case Standing::dead:
      return TaskState::dead;
    case Standing::completed:
      return TaskState::completed;
    case Standing::cancelled:
      return TaskState::cancelled;
    case Standing::live:
      break;
  }
  // An overdue one waits to be loaded, or for its turn in the ready lane.
  return task.due_at <= time_.wall_now() ? TaskState::ready : TaskState::scheduled;
}

Engine::LoadedTask* Engine::find_loaded(TaskId id) noexcept {
  const auto it = loaded_by_id_.find(id.value);
  return it == loaded_by_id_.end() ? nullptr : it->second;
}

}  // namespace detent
