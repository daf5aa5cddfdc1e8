// Scheduling, cancelling and leasing, and how a task gets into memory. The other verbs are in
// engine_lease.cc and engine_move.cc, what happens by itself as time passes in engine_turn.cc.
#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "engine/engine_state.h"
#include "task/lifecycle.h"
#include "task/retry.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Most payload bytes in one answer to a lease, so that an answer stays within a few HTTP buffers.
constexpr std::size_t kMaxLeaseBytes = 16 * 1024 * 1024;

Error no_task(TaskId id) {
  return Error{ErrorCode::not_found, "there is no task " + to_string(id), "id"};
}

}  // namespace

bool Engine::ReadyOrder::operator()(const LoadedTask* a, const LoadedTask* b) const noexcept {
  if (a->priority != b->priority) return a->priority < b->priority;
  if (a->due_at != b->due_at) return a->due_at < b->due_at;
  return a->id() < b->id();
}

// ---- schedule, get, cancel ----

Result<TaskView> Engine::schedule(const ScheduleRequest& request) {
  if (stopped_by_) return *stopped_by_;
  TRY(validate(request));
  DETENT_CHECK(last_id_.next().value < TaskId::kEnd);
  last_id_ = last_id_.next();
  const Deadline deadline = deadline_of(request.due);
  Task task{.id = last_id_,
            .queue = request.queue,
            .payload = request.payload,
            .rules = request.rules,
            .due_at = deadline.due_at,
            .created_at = time_.wall_now()};
  ++counters_.scheduled;
  Queue& queue = queue_of(task.queue);
  ++queue.counts.waiting;
  note_counts(queue);
  TaskView view{.task = task, .state = TaskState::scheduled};
  place(std::move(task), std::nullopt, deadline);
  if (const LoadedTask* loaded = find_loaded(view.task.id)) view.state = loaded->state;
  return view;
}

Result<TaskView> Engine::get(TaskId id) {
  if (stopped_by_) return *stopped_by_;
  ASSIGN_OR_RETURN(Found found, find(id));
  return TaskView{.task = std::move(found.stored.task), .state = found.state};
}

Result<void> Engine::cancel(TaskId id) {
  if (stopped_by_) return *stopped_by_;
  if (LoadedTask* loaded = find_loaded(id)) {
    if (!next_state(loaded->state, TaskVerb::cancel)) return is_leased(id);
    remove(*loaded);
  } else {
    ASSIGN_OR_RETURN(const std::optional<StoredTask> stored, find_stored(id));
    if (!stored) return no_task(id);
    remove(*stored);
  }
  ++counters_.cancelled;
  return ok();
}

// ---- lease ----

Result<std::vector<LeasedTask>> Engine::lease(const LeaseRequest& request) {
  if (stopped_by_) return *stopped_by_;
  TRY(validate(request));
  const auto it = queues_.find(request.queue);
  if (it == queues_.end()) return std::vector<LeasedTask>{};
  serve_waits();  // who waits came first
  Queue& queue = *it->second;
  Result<std::vector<LeasedTask>> tasks = take_ready(queue, request);
  // What could not be read is set aside now: what is behind it may be sound.
  while (tasks && tasks->empty() && !queue.ready.empty()) tasks = take_ready(queue, request);
  return tasks;
}

Engine::WaitId Engine::lease_or_wait(const LeaseRequest& request, milliseconds wait,
                                     LeaseDone done) {
  const WaitId id = ++last_wait_;
  Result<std::vector<LeasedTask>> ready = lease(request);
  if (!ready || !ready->empty() || wait <= milliseconds{0} || waits_ended_) {
    answer_after_commit(std::move(done), std::move(ready));
    return id;
  }
  Wait& parked = waits_.emplace();
  parked.id = id;
  parked.queue = &queue_of(request.queue);
  parked.request = request;
  parked.done = std::move(done);
  parked.queue->waits.emplace(id, &parked);
  waits_by_id_.emplace(id, &parked);
  wait_wheel_.schedule(parked.index, time_.tick_after(wait));
  return id;
}

void Engine::abandon_wait(WaitId id) {
  const auto it = waits_by_id_.find(id);
  if (it == waits_by_id_.end()) return;
  Queue& queue = *it->second->queue;
  finish_wait(*it->second, std::vector<LeasedTask>{});
  forget_if_unused(queue);
}

void Engine::end_waits() {
  waits_ended_ = true;
  waits_.for_each([this](Wait& wait) { finish_wait(wait, std::vector<LeasedTask>{}); });
}

Result<std::vector<LeasedTask>> Engine::take_ready(Queue& queue, const LeaseRequest& request) {
  std::vector<LoadedTask*> picked;
  for (auto it = queue.ready.begin(); it != queue.ready.end() && picked.size() < request.max;
       ++it) {
    picked.push_back(*it);
  }
  ASSIGN_OR_RETURN(std::vector<Result<Task>> records, read_all(picked));
  std::vector<LeasedTask> leased;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < picked.size(); ++i) {
    if (!records[i]) {
      set_aside(*picked[i]);
      continue;
    }
    bytes += records[i]->payload.data.size();
    if (bytes > kMaxLeaseBytes && !leased.empty()) break;
    leased.push_back(hand_out(*picked[i], *std::move(records[i]), request));
  }
  return leased;
}

LeasedTask Engine::hand_out(LoadedTask& loaded, Task task, const LeaseRequest& request) {
  DETENT_CHECK(next_state(loaded.state, TaskVerb::lease) == TaskState::leased);
  loaded.queue->ready.erase(&loaded);
  loaded.state = TaskState::leased;
  loaded.lease = ++last_lease_;
  leases_.emplace(loaded.lease, &loaded);
  ++loaded.queue->leased;
  ++counters_.leased;
  const milliseconds timeout = request.visibility_timeout.value_or(
      task.rules.visibility_timeout.value_or(kDefaultVisibilityTimeout));
  due_wheel_.schedule(loaded.index, time_.tick_after(timeout));
  const milliseconds lateness = time_.wall_now() - loaded.due_at;
  return LeasedTask{.task = std::move(task),
                    .lease = {.epoch = epoch_, .number = loaded.lease},
                    .attempt = loaded.attempts + 1,
                    .lease_until = time_.wall_after(timeout),
                    .lateness = std::max(lateness, milliseconds{0})};
}

// ---- tasks in memory and where they are stored ----

Engine::Deadline Engine::deadline_of(const Due& due) const {
  if (const auto* delay = std::get_if<milliseconds>(&due)) {
    return {.due_at = time_.wall_after(*delay), .tick = time_.tick_after(*delay)};
  }
  return dated(std::get<WallTime>(due));
}

Engine::Deadline Engine::dated(WallTime due_at) const {
  return {.due_at = due_at, .tick = time_.tick_at(due_at), .follows_wall = true};
}

void Engine::place(Task task, std::optional<DueKey> from, Deadline deadline) {
  task.due_at = deadline.due_at;
  DueKey place{.at = deadline.due_at, .id = task.id};
  if (is_loaded_place(place) && is_full()) shrink_window();
  if (is_loaded_place(place) && is_full()) {
    // Full of what is due: behind the window it waits on disk, and is loaded once there is room.
    place.at = loaded_to_.at + milliseconds{1};
    behind_to_ = std::max(behind_to_, place.at);
  }
  if (is_loaded_place(place)) load(task, place, deadline);
  staging_.put(from, {.place = place, .task = std::move(task)});
}

void Engine::load(const Task& task, DueKey place, Deadline deadline) {
  LoadedTask& loaded = loaded_.emplace();
  const bool is_new = loaded_by_id_.emplace(place.id.value, &loaded).second;
  DETENT_CHECK(is_new);
  loaded.place = place;
  loaded.due_at = deadline.due_at;
  loaded.tick = deadline.tick;
  loaded.queue = &queue_of(task.queue);
  loaded.priority = task.rules.priority;
  loaded.attempts = task.attempts;
  loaded.max_attempts = max_attempts_of(task.rules);
  loaded.follows_wall = deadline.follows_wall;
  if (loaded.tick <= time_.now()) {
    become_ready(loaded);
  } else {
    due_wheel_.schedule(loaded.index, loaded.tick);
  }
}

void Engine::become_ready(LoadedTask& task) {
  DETENT_CHECK(next_state(task.state, TaskVerb::become_due) == TaskState::ready);
  task.state = TaskState::ready;
  task.queue->ready.insert(&task);
  ++counters_.fired;
  lateness_.record(clock_.now() - time_.when(task.tick));
  want_serving(*task.queue);
}

void Engine::unload(LoadedTask& task) {
  Queue& queue = *task.queue;
  if (task.state == TaskState::ready) queue.ready.erase(&task);
  if (task.state == TaskState::leased) {
    --queue.leased;
    leases_.erase(task.lease);
  }
  due_wheel_.cancel(task.index);
  loaded_by_id_.erase(task.id().value);
  loaded_.erase(task.index);
}

void Engine::remove(LoadedTask& task) {
  staging_.erase(task.place);
  Queue& queue = *task.queue;
  --queue.counts.waiting;
  note_counts(queue);
  unload(task);
}

void Engine::remove(const StoredTask& stored) {
  Queue& queue = queue_of(stored.task.queue);
  --(stored.task.dead ? queue.counts.dead : queue.counts.waiting);
  note_counts(queue);
  staging_.erase(stored.place);  // last: `stored` may be what is staged
}

Result<Task> Engine::read(LoadedTask& loaded) {
  ASSIGN_OR_RETURN(std::vector<Result<Task>> records, read_all({&loaded}));
  if (!records.front()) set_aside(loaded);
  return std::move(records.front());
}

Result<std::vector<Result<Task>>> Engine::read_all(const std::vector<LoadedTask*>& tasks) {
  std::vector<DueKey> places;
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
    const DueKey place = loaded->place;
    ASSIGN_OR_RETURN(Task task, read(*loaded));
    return Found{.stored = {place, std::move(task)}, .state = loaded->state, .loaded = loaded};
  }
  ASSIGN_OR_RETURN(std::optional<StoredTask> stored, find_stored(id));
  if (!stored) return no_task(id);
  const TaskState state = state_on_disk(stored->task);
  return Found{.stored = *std::move(stored), .state = state};
}

TaskState Engine::state_on_disk(const Task& task) const {
  if (task.dead) return TaskState::dead;
  // An overdue one waits for room in memory.
  return task.due_at <= time_.wall_now() ? TaskState::ready : TaskState::scheduled;
}

Engine::LoadedTask* Engine::find_loaded(TaskId id) noexcept {
  const auto it = loaded_by_id_.find(id.value);
  return it == loaded_by_id_.end() ? nullptr : it->second;
}

Engine::Queue& Engine::queue_of(const std::string& name) {
  std::unique_ptr<Queue>& queue = queues_[name];
  if (queue == nullptr) queue = std::make_unique<Queue>(name);
  return *queue;
}

void Engine::note_counts(Queue& queue) {
  queue.had_tasks = true;
  if (!std::exchange(queue.counts_changed, true)) changed_counts_.push_back(&queue);
}

}  // namespace detent
