#include "engine/window/loaded_tasks.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "task/lifecycle.h"

namespace detent {
namespace {

constexpr std::size_t kManyBuckets = 10'000;

}  // namespace

Error no_such_task(TaskId id) {
  return Error{ErrorCode::not_found, "there is no task " + to_string(id), "id"};
}

Error not_allowed(TaskId id, TaskState state) {
  const std::string what = state == TaskState::leased
                               ? " is leased: complete it, or wait for its lease to end"
                               : " has ended: it is " + std::string(to_string(state));
  return Error{ErrorCode::conflict, "task " + to_string(id) + what, "id"};
}

LoadedTasks::LoadedTasks(Parts parts, std::size_t most_leased, std::size_t crowd)
    : parts_(parts), most_leased_(most_leased), timers_(parts.time.now(), crowd) {}

// ---- coming and going ----

void LoadedTasks::load(const Task& task, Place place, Deadline deadline) {
  DETENT_CHECK(task.standing == Standing::live && task.id == place.id);
  DETENT_CHECK(place.lane == Lane::due || place.lane == Lane::ready);
  LoadedTask& loaded = tasks_.emplace();
  const bool is_new = by_id_.emplace(place.id.value, &loaded).second;
  DETENT_CHECK(is_new);
  loaded.place = place;
  loaded.due_at = deadline.due_at;
  loaded.created_at = task.created_at;
  loaded.tick = deadline.tick;
  loaded.queue = &parts_.queues.queue_of(task.queue);
  ++loaded.queue->loaded;
  loaded.priority = task.rules.priority;
  loaded.attempts = task.attempts;
  loaded.payload_bytes = static_cast<std::uint32_t>(task.payload.data.size());
  loaded.follows_wall = deadline.follows_wall;
  loaded.has_key = !task.key.empty();
  loaded.has_webhook = !task.webhook.empty();
  loaded.queue->had_webhooks |= loaded.has_webhook;
  if (place.lane == Lane::ready) {
    DETENT_CHECK(place.queue == loaded.ready_tasks().lane);
    // The task fired before and was not handed out. How much of that time a limit held it back is
    // unknown.
    loaded.ready_since = std::max(parts_.time.when(loaded.tick), parts_.lateness.opened_at());
    ++loaded.ready_tasks().loaded_from_lane;
    ++loaded_from_lanes_;
    loaded.state = TaskState::ready;
    enter_ready(loaded);
  } else if (loaded.tick <= parts_.time.now()) {
    become_ready(loaded, parts_.clock.now());
  } else {
    timers_.set(loaded, loaded.tick);
  }
}

void LoadedTasks::unload(LoadedTask& task) {
  Queue& queue = *task.queue;
  if (task.state == TaskState::ready) leave_ready(task);
  if (task.state == TaskState::leased) {
    drop_lease(task);
    parts_.turns.want_serving(queue);
  }
  if (task.place.lane == Lane::ready) {
    DETENT_CHECK(task.ready_tasks().loaded_from_lane > 0 && loaded_from_lanes_ > 0);
    --task.ready_tasks().loaded_from_lane;
    --loaded_from_lanes_;
  }
  DETENT_CHECK(queue.loaded > 0);
  --queue.loaded;
  timers_.cancel(task);
  const std::size_t erased = by_id_.erase(task.id().value);
  DETENT_CHECK(erased == 1);
  tasks_.erase(task.index);
  // A map keeps the buckets of the time when it had most tasks. Making the map smaller is rare, so
  // it costs O(1) per task.
  const std::size_t buckets = by_id_.bucket_count();
  if (buckets > kManyBuckets && by_id_.size() < buckets / 8) by_id_.rehash(0);
}

void LoadedTasks::set_aside(LoadedTask& task) {
  const Place place = task.place;
  lose(task);
  parts_.records.set_aside({&place, 1});
}

/// Removes a task whose record cannot be read from its queue and from memory.
void LoadedTasks::lose(LoadedTask& task) {
  Queue& queue = *task.queue;
  parts_.records.uncount(queue, task.id(), task.due_at, task.created_at, task.payload_bytes);
  if (task.place.lane == Lane::ready) task.ready_tasks().take_from_lane();
  parts_.queues.note_change(queue);
  unload(task);
}

void LoadedTasks::set_aside(std::span<const Place> places, Queue* queue) {
  std::vector<Place> lost;
  for (const Place& place : places) {
    if (parts_.records.is_staged(place.id)) continue;
    lost.push_back(place);
    if (LoadedTask* const loaded = find_loaded(place.id)) {
      lose(*loaded);
    } else if (queue != nullptr) {
      if (place.lane == Lane::ready) queue->ready_at(place).take_from_lane();
      std::uint64_t& count = place.lane == Lane::dead ? queue->record.dead : queue->record.waiting;
      DETENT_CHECK(count > 0);
      --count;
      parts_.queues.note_change(*queue);
    }
  }
  parts_.records.set_aside(lost);
}

// ---- time ----

bool LoadedTasks::fire(TaskTimers::Wheel wheel, Tick now, std::size_t limit,
                       std::vector<LoadedTask*>& ran_out) {
  const bool more = timers_.fire(wheel, now, limit, [&](std::uint32_t index) {
    LoadedTask& task = tasks_[index];
    DETENT_CHECK(task.state == TaskState::leased || task.state == TaskState::scheduled);
    if (task.state == TaskState::leased) {
      ran_out.push_back(&task);
    } else if (task.queue->wheel != wheel) {
      timers_.set(task, task.tick);  // moves to the wheel of its queue
    } else {
      due_.push_back(&task);
    }
  });
  // Sorted in the order of their queues, so that each task finds its place next to the previous
  // task.
  std::ranges::sort(due_, ReadyOrder());
  const MonotonicTime fired = parts_.clock.now();
  for (LoadedTask* const task : due_) become_ready(*task, fired);
  due_.clear();
  return more;
}

void LoadedTasks::retime() {
  tasks_.for_each([this](LoadedTask& task) {
    if (task.state != TaskState::scheduled || !task.follows_wall) return;
    task.tick = parts_.time.tick_at(task.due_at);
    timers_.set(task, task.tick);
  });
}

void LoadedTasks::become_ready(LoadedTask& task, MonotonicTime now) {
  task.state = state_after(task.state, TaskVerb::become_due);
  note_fired(task.id(), *task.queue, task.tick, now);
  task.ready_since = now;
  task.held_before_ready = parts_.lateness.held_total(*task.queue, now);
  enter_ready(task);
}

void LoadedTasks::note_fired(TaskId id, Queue& queue, Tick tick, MonotonicTime now) {
  parts_.news.count(queue, &TaskCounters::fired);
  parts_.news.tell(id, queue, TaskEvent::ready, TaskState::ready);
  parts_.lateness.note_fired(tick, now);
}

// ---- ready tasks, and leased ones ----

void LoadedTasks::enter_ready(LoadedTask& task) {
  DETENT_CHECK(task.state == TaskState::ready);
  // Usually the new task is the last in the order, so the search begins there.
  auto& ready = task.ready_tasks().in_memory;
  const std::size_t before = ready.size();
  ready.insert(ready.end(), &task);
  DETENT_CHECK(ready.size() == before + 1);  // two tasks never have the same place in the order
  ++ready_;
  if (task.queue->ready_in_memory() == 1) {
    task.queue->among_ready_at = with_ready_.size();
    with_ready_.push_back(task.queue);
  }
  latest_ready_ = std::max(latest_ready_, task.due_at);
  if (task.is_urgent()) {
    ++task.queue->urgent;
    ++urgent_;
  }
  parts_.turns.want_serving(*task.queue);
}

void LoadedTasks::leave_ready(LoadedTask& task) {
  const std::size_t erased = task.ready_tasks().in_memory.erase(&task);
  DETENT_CHECK(erased == 1);
  --ready_;
  if (task.queue->ready_in_memory() == 0) {
    DETENT_CHECK(with_ready_.at(task.queue->among_ready_at) == task.queue);
    with_ready_[task.queue->among_ready_at] = with_ready_.back();
    with_ready_.back()->among_ready_at = task.queue->among_ready_at;
    with_ready_.pop_back();
  }
  if (!task.is_urgent()) return;
  DETENT_CHECK(task.queue->urgent > 0 && urgent_ > 0);
  --task.queue->urgent;
  --urgent_;
}

void LoadedTasks::open_lease(std::uint64_t number, Lease lease, Tick until) {
  DETENT_CHECK(lease.task != nullptr && number != 0);
  LoadedTask& task = *lease.task;
  task.state = state_after(task.state, TaskVerb::lease);
  leave_ready(task);
  task.lease = number;
  ++task.queue->leased;
  task.queue->handed_out_at = parts_.clock.now();
  timers_.set(task, until);
  const bool is_new = leases_.emplace(number, std::move(lease)).second;
  DETENT_CHECK(is_new);
  note_limits(*task.queue);
}

/// An expired lease has no timer any more. It is over even if the next commit fails.
void LoadedTasks::drop_lease(const LoadedTask& task) {
  auto lease = leases_.extract(task.lease);
  DETENT_CHECK(!lease.empty() && lease.mapped().task == &task);
  DETENT_CHECK(task.queue->leased > 0);
  if (timers_.is_pending(task)) {
    ended_leases_.push_back(held_lease(task, std::move(lease.mapped())));
  }
  --task.queue->leased;
  note_limits(*task.queue);
}

void LoadedTasks::give_back(LoadedTask& task) {
  task.state = state_after(task.state, TaskVerb::release);
  drop_lease(task);
  timers_.cancel(task);
  task.tick = parts_.time.now();
  task.ready_since = parts_.clock.now();
  task.held_before_ready = parts_.lateness.held_total(*task.queue, task.ready_since);
  enter_ready(task);
}

std::vector<HeldLease> LoadedTasks::held_leases() const {
  std::vector<HeldLease> held;
  for (const auto& [number, lease] : leases_) {
    if (timers_.is_pending(*lease.task)) held.push_back(held_lease(*lease.task, lease));
  }
  return held;
}

HeldLease LoadedTasks::held_lease(const LoadedTask& task, Lease lease) const {
  lease.task = nullptr;
  return {.number = task.lease,
          .lease = std::move(lease),
          .task = task.id(),
          .attempts = task.attempts,
          .until = timers_.tick_of(task),
          .is_delivery = task.has_webhook || task.queue->record.settings.webhook};
}

std::size_t LoadedTasks::allowance(const Queue& queue) const {
  const QueueSettings& settings = queue.record.settings;
  if (settings.paused || parts_.time.now() < queue.paused_until) return 0;
  std::size_t left = most_leased_ - std::min(most_leased_, leases_.size());
  if (settings.concurrency) {
    left = std::min(
        left, *settings.concurrency - std::min<std::size_t>(*settings.concurrency, queue.leased));
  }
  if (settings.rate) {
    left = std::min<std::size_t>(left, queue.rate.left(*settings.rate, parts_.time.now()));
  }
  return left;
}

const Lease* LoadedTasks::find_lease(LeaseToken token) const noexcept {
  const auto it = leases_.find(token.number);
  if (it == leases_.end() || it->second.epoch != token.epoch) return nullptr;
  const LoadedTask& task = *it->second.task;
  DETENT_CHECK(task.state == TaskState::leased && task.lease == token.number);
  return &it->second;
}

// ---- finding and reading ----

LoadedTask* LoadedTasks::find_loaded(TaskId id) const noexcept {
  const auto it = by_id_.find(id.value);
  return it == by_id_.end() ? nullptr : it->second;
}

Result<FoundTask> LoadedTasks::find(TaskId id) {
  if (LoadedTask* loaded = find_loaded(id)) {
    const Place place = loaded->place;
    ASSIGN_OR_RETURN(Task task, read(*loaded));
    return FoundTask{.stored = {place, std::move(task)}, .state = loaded->state, .loaded = loaded};
  }
  ASSIGN_OR_RETURN(std::optional<StoredTask> stored, parts_.records.find(id));
  if (!stored) return no_such_task(id);
  const TaskState state = state_on_disk(stored->task);
  return FoundTask{.stored = *std::move(stored), .state = state};
}

TaskSnapshot LoadedTasks::snapshot(Task task, const Place& place, TaskState state) const {
  TaskSnapshot view{.task = std::move(task), .state = state};
  if (state == TaskState::dead) view.died_at = place.at;
  if (state == TaskState::leased) {
    const LoadedTask* const loaded = find_loaded(view.task.id);
    DETENT_CHECK(loaded != nullptr);
    const Lease& lease = leases().at(loaded->lease);
    view.holder = LeaseHolder{.since = lease.since, .worker = lease.worker, .late = lease.late};
  }
  return view;
}

Result<bool> LoadedTasks::has(TaskId id) {
  if (find_loaded(id) != nullptr) return true;
  const Result<std::optional<StoredTask>> stored = parts_.records.find(id);
  if (!stored && stored.error().code != ErrorCode::data_loss) return stored.error();
  return !stored || stored->has_value();
}

Result<Task> LoadedTasks::read(LoadedTask& task) {
  ASSIGN_OR_RETURN(std::vector<Result<Task>> records, parts_.records.read_all({&task}));
  if (!records.front()) set_aside(task);
  return std::move(records.front());
}

TaskState LoadedTasks::state_on_disk(const Task& task) const {
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
  return task.due_at <= parts_.time.wall_now() ? TaskState::ready : TaskState::scheduled;
}

TaskState LoadedTasks::state_of(const Task& task) const {
  const LoadedTask* const loaded = find_loaded(task.id);
  return loaded != nullptr ? loaded->state : state_on_disk(task);
}

// ---- checks ----

bool LoadedTasks::would_be_stuck(LoadedTask& task) const {
  switch (task.state) {
    case TaskState::scheduled:
      return !timers_.is_pending(task);
    case TaskState::ready:
      return !task.ready_tasks().in_memory.contains(&task);
    case TaskState::leased: {
      const auto lease = leases_.find(task.lease);
      return !timers_.is_pending(task) || lease == leases_.end() || lease->second.task != &task;
    }
    case TaskState::dead:
    case TaskState::completed:
    case TaskState::cancelled:
      break;
  }
  return true;  // these are never in memory
}

void LoadedTasks::check_invariants() const {
  timers_.check_invariants();
  tasks_.check_invariants();
  DETENT_CHECK(tasks_.size() == by_id_.size());
  std::size_t timers = 0;
  tasks_.for_each([&](const LoadedTask& task) {
    const bool has_timer = task.state != TaskState::ready;
    DETENT_CHECK(timers_.is_pending(task) == has_timer);
    if (has_timer) ++timers;
  });
  DETENT_CHECK(timers == timers_.size());
  std::size_t ready = 0;
  std::size_t leased = 0;
  std::size_t urgent = 0;
  for (const auto& entry : parts_.queues) {
    const Queue* const queue = entry.second.get();
    ready += queue->ready_in_memory();
    const bool is_among_ready =
        queue->among_ready_at < with_ready_.size() && with_ready_[queue->among_ready_at] == queue;
    DETENT_CHECK(is_among_ready == (queue->ready_in_memory() > 0));
    leased += queue->leased;
    std::uint64_t loaded = 0;
    tasks_.for_each([&](const LoadedTask& task) {
      if (task.queue == queue) ++loaded;
    });
    DETENT_CHECK(loaded == queue->loaded);
    std::size_t of_queue = 0;
    for (const ReadyTasks* const tasks : {&queue->ready, &queue->webhooks}) {
      of_queue += check_ready(*queue, *tasks);
    }
    DETENT_CHECK(queue->urgent == of_queue);
    urgent += queue->urgent;
  }
  DETENT_CHECK(urgent == urgent_);
  DETENT_CHECK(ready == ready_ && leased == leases_.size());
  for (const auto& [number, lease] : leases_) {
    DETENT_CHECK(lease.task->state == TaskState::leased && lease.task->lease == number);
  }
}

/// Checks one order of a queue. Returns the number of its urgent tasks.
std::size_t LoadedTasks::check_ready(const Queue& queue, const ReadyTasks& ready) const {
  const bool is_webhooks = &ready == &queue.webhooks;
  std::uint64_t from_lane = 0;
  tasks_.for_each([&](const LoadedTask& task) {
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

}  // namespace detent
