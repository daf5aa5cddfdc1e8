// What happens by itself as time passes: firing, leases that run out, waiting workers, the commit,
// and the load window.
#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "task/lifecycle.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Timers fired or moved in one turn, so that requests and commits come between in a storm.
constexpr std::size_t kFireLimit = 10'000;
/// Leases ended in one turn: their records are read and written whole.
constexpr std::size_t kLeaseEndLimit = 256;
/// Tasks loaded in one turn.
constexpr std::size_t kPageTasks = 1'000;
/// How long a lease that ran out waits when the store could not be read.
constexpr milliseconds kReadRetry{1'000};
/// How long after an attempt in vain the window may try to shrink again, and by which part of what
/// is scheduled in it it does.
constexpr milliseconds kShrinkPause{1'000};
constexpr std::size_t kShrinkPart = 4;
constexpr TaskId kLastId{~std::uint64_t{0}};

}  // namespace

// ---- open ----

Engine::Engine(Store& store, Clock& clock, EngineOptions options)
    : store_(store),
      clock_(clock),
      options_(options),
      time_(clock),
      rng_(options.seed),
      last_id_(store.last_id()),
      due_wheel_(time_.now()),
      wait_wheel_(time_.now()) {
  DETENT_CHECK(options.max_loaded > 0);
}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::open(Store& store, Clock& clock, EngineOptions options) {
  std::unique_ptr<Engine> engine(new Engine(store, clock, options));
  TRY(engine->recover());
  return engine;
}

Result<void> Engine::recover() {
  ASSIGN_OR_RETURN(epoch_, store_.begin_epoch());
  ASSIGN_OR_RETURN(const std::vector<QueueCounts> counts, store_.queue_counts());
  for (const QueueCounts& of_queue : counts) {
    Queue& queue = queue_of(of_queue.queue);
    queue.counts = of_queue;
    queue.had_tasks = true;
  }
  while (wants_page()) TRY(load_page());
  return ok();
}

// ---- the turn ----

Result<void> Engine::turn() {
  if (!stopped_by_) {
    notice_clock();
    fire_due();
    serve_waits();
  }
  TRY(commit());
  if (wants_page()) TRY(load_page());
  return ok();
}

std::optional<MonotonicTime> Engine::next_wakeup() const {
  if (!after_commit_.empty()) return clock_.now();
  if (stopped_by_) return std::nullopt;
  if (!staging_.empty() || !to_serve_.empty() || wants_page()) return clock_.now();
  std::optional<Tick> next = due_wheel_.next_wakeup();
  const auto take_earlier = [&next](std::optional<Tick> tick) {
    if (tick && (!next || *tick < *next)) next = tick;
  };
  take_earlier(wait_wheel_.next_wakeup());
  if (room_for_pages() > 0) {
    take_earlier(time_.tick_at(loaded_to_.at - options_.window / 2));
  }
  if (!next) return std::nullopt;
  return time_.when(*next);
}

void Engine::fire_due() {
  const Tick now = time_.now();
  std::vector<LoadedTask*> ran_out;
  const auto fire_task = [&](std::uint32_t index) {
    LoadedTask& task = loaded_[index];
    if (task.state == TaskState::leased) {
      ran_out.push_back(&task);
    } else {
      become_ready(task);
    }
  };
  due_wheel_.advance(now, fire_task, kFireLimit);
  while (ran_out.size() > kLeaseEndLimit) {
    due_wheel_.schedule(ran_out.back()->index, now);  // in the next turn
    ran_out.pop_back();
  }
  end_leases(ran_out);

  const auto end_wait = [this](std::uint32_t index) { abandon_wait(waits_[index].id); };
  wait_wheel_.advance(now, end_wait, kFireLimit);
}

void Engine::end_leases(const std::vector<LoadedTask*>& ran_out) {
  if (ran_out.empty()) return;
  Result<std::vector<Result<Task>>> records = read_all(ran_out);
  if (!records) {
    const Tick retry = time_.tick_after(kReadRetry);
    for (const LoadedTask* task : ran_out) due_wheel_.schedule(task->index, retry);
    return;
  }
  for (std::size_t i = 0; i < ran_out.size(); ++i) {
    Result<Task>& record = (*records)[i];
    if (!record) {
      set_aside(*ran_out[i]);
      continue;
    }
    ++counters_.leases_expired;
    record->last_error = "the lease ran out";
    end_attempt(*ran_out[i], *std::move(record), TaskVerb::run_out, std::nullopt);
  }
}

void Engine::notice_clock() {
  if (!time_.notice_step()) return;
  loaded_.for_each([this](LoadedTask& task) {
    if (task.state != TaskState::scheduled || !task.follows_wall) return;
    task.tick = time_.tick_at(task.due_at);
    due_wheel_.schedule(task.index, task.tick);
  });
}

// ---- waiting workers ----

void Engine::want_serving(Queue& queue) {
  if (queue.waits.empty() || std::exchange(queue.to_serve, true)) return;
  to_serve_.push_back(&queue);
}

void Engine::serve_waits() {
  for (Queue* queue : std::exchange(to_serve_, {})) {
    queue->to_serve = false;
    while (!queue->waits.empty() && !queue->ready.empty()) {
      Wait& wait = *queue->waits.begin()->second;
      Result<std::vector<LeasedTask>> tasks = take_ready(*queue, wait.request);
      if (tasks && tasks->empty()) continue;  // what was ready could not be read; it is set aside
      finish_wait(wait, std::move(tasks));
    }
  }
}

void Engine::finish_wait(Wait& wait, Result<std::vector<LeasedTask>> answer) {
  answer_after_commit(std::move(wait.done), std::move(answer));
  wait_wheel_.cancel(wait.index);
  wait.queue->waits.erase(wait.id);
  waits_by_id_.erase(wait.id);
  waits_.erase(wait.index);
}

/// A queue that workers ask for and that never had a task is not kept: names cost nothing to make
/// up.
void Engine::forget_if_unused(Queue& queue) {
  if (queue.had_tasks || queue.to_serve || !queue.waits.empty()) return;
  queues_.erase(queue.counts.queue);
}

void Engine::answer_after_commit(LeaseDone done, Result<std::vector<LeasedTask>> answer) {
  after_commit(
      [done = std::move(done), answer = std::move(answer)](const Result<void>& committed) mutable {
        if (!committed) {
          done(committed.error());
        } else {
          done(std::move(answer));
        }
      });
}

// ---- the commit ----

void Engine::after_commit(Committed committed) { after_commit_.push_back(std::move(committed)); }

Result<void> Engine::commit() {
  Result<void> result = write_staged();
  if (stopped_by_) waits_.for_each([this](Wait& wait) { finish_wait(wait, *stopped_by_); });
  for (Committed& committed : std::exchange(after_commit_, {})) committed(result);
  return result;
}

Result<void> Engine::write_staged() {
  if (stopped_by_) return *stopped_by_;
  if (staging_.empty() && changed_counts_.empty()) return ok();
  WriteBatch batch = staging_.take();
  for (Queue* queue : std::exchange(changed_counts_, {})) {
    queue->counts_changed = false;
    batch.counts.push_back(queue->counts);
  }
  batch.last_id = last_id_;
  const MonotonicTime start = clock_.now();
  if (Result<void> written = store_.write(batch, options_.durability); !written) {
    return stop_acknowledging(std::move(written).error());
  }
  commit_time_.record(clock_.now() - start);
  ++commits_;
  committed_tasks_ += batch.puts.size() + batch.erases.size();
  return ok();
}

Error Engine::stop_acknowledging(Error error) {
  error.code = ErrorCode::unavailable;
  stopped_by_ =
      with_context("the store failed, nothing more is accepted until a restart", std::move(error));
  return *stopped_by_;
}

void Engine::set_aside(LoadedTask& task) {
  const DueKey place = task.place;
  --task.queue->counts.waiting;
  note_counts(*task.queue);
  unload(task);
  ++counters_.quarantined;
  if (Result<void> moved = store_.quarantine(place); !moved) {
    stop_acknowledging(std::move(moved).error());
  }
}

// ---- the load window ----

bool Engine::wants_page() const {
  // What is staged is not in the store yet: a page read now would miss it and move past it.
  if (stopped_by_ || !staging_.empty()) return false;
  if (room_for_pages() == 0) return false;
  return more_stored_ || has_placed_behind() ||
         time_.wall_now() + options_.window / 2 >= loaded_to_.at;
}

/// Pages leave a part of the memory to new tasks, which may be due before anything on disk; but
/// what was placed behind the window has waited long enough.
std::size_t Engine::room_for_pages() const noexcept {
  const std::size_t reserve = has_placed_behind() ? 0 : options_.max_loaded / kShrinkPart;
  const std::size_t most = options_.max_loaded - reserve;
  return most - std::min(most, loaded_.size());
}

/// Gives the scheduled tasks that are due last back to the disk, so that new ones that are due
/// before them have room. What is ready or leased stays, and with it the window up to its places.
void Engine::shrink_window() {
  if (time_.now() < next_shrink_) return;
  DueKey kept = kFirstDueKey;  // the window reaches at least so far
  std::vector<DueKey> scheduled;
  loaded_.for_each([&](const LoadedTask& task) {
    if (task.state == TaskState::scheduled) {
      scheduled.push_back(task.place);
    } else {
      kept = std::max(kept, task.place);
    }
  });
  std::erase_if(scheduled, [kept](DueKey place) { return place <= kept; });
  if (scheduled.empty()) {
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
  const WallTime until = std::max(
      {WallTime{time_.wall_now() + options_.window}, loaded_to_.at + milliseconds{1}, behind_to_});
  const std::size_t limit = std::min(kPageTasks, room_for_pages());
  Result<DuePage> page = store_.read_due(loaded_to_, until, limit);
  if (!page) return stop_acknowledging(std::move(page).error());
  for (const DueKey& damaged : page->damaged) {
    ++counters_.quarantined;
    if (Result<void> moved = store_.quarantine(damaged); !moved) {
      return stop_acknowledging(std::move(moved).error());
    }
  }
  for (const StoredTask& stored : page->tasks) {
    load(stored.task, stored.place, dated(stored.task.due_at));
  }
  more_stored_ = page->more;
  if (!page->more) {
    loaded_to_ = {.at = until, .id = kLastId};
  } else if (!page->tasks.empty()) {
    loaded_to_ = std::max(loaded_to_, page->tasks.back().place);
  }
  return ok();
}

// ---- what can be seen from outside ----

EngineStats Engine::stats() const {
  EngineStats stats{.counters = counters_,
                    .queues = {},
                    .loaded = loaded_.size(),
                    .waiting_workers = waits_.size(),
                    .commits = commits_,
                    .committed_tasks = committed_tasks_,
                    .lateness = lateness_.snapshot(),
                    .commit_time = commit_time_.snapshot()};
  for (const auto& [name, queue] : queues_) {
    QueueStats of_queue{.queue = name,
                        .scheduled = queue->counts.waiting - queue->ready.size() - queue->leased,
                        .ready = queue->ready.size(),
                        .leased = queue->leased,
                        .dead = queue->counts.dead,
                        .oldest_ready_age = std::nullopt};
    if (!queue->ready.empty()) {
      of_queue.oldest_ready_age = time_.wall_now() - (*queue->ready.begin())->due_at;
    }
    stats.queues.push_back(std::move(of_queue));
  }
  std::ranges::sort(stats.queues, {}, &QueueStats::queue);
  return stats;
}

void Engine::check_invariants() {
  DETENT_CHECK(staging_.empty());
  due_wheel_.check_invariants();
  wait_wheel_.check_invariants();
  loaded_.check_invariants();
  waits_.check_invariants();
  std::size_t in_memory = 0;
  std::size_t timers = 0;
  std::unordered_map<std::string, QueueCounts> found;
  for (DueKey after = kFirstDueKey;;) {
    const DuePage page = store_.read_due(after, kNeverDue, kPageTasks).value();
    for (const StoredTask& stored : page.tasks) {
      QueueCounts& counts = found[stored.task.queue];
      ++(stored.task.dead ? counts.dead : counts.waiting);
      const LoadedTask* loaded = find_loaded(stored.task.id);
      DETENT_CHECK((loaded != nullptr) == (!stored.task.dead && is_loaded_place(stored.place)));
      if (loaded == nullptr) continue;
      ++in_memory;
      DETENT_CHECK(loaded->place == stored.place);
      const bool has_timer = loaded->state != TaskState::ready;
      DETENT_CHECK(due_wheel_.is_pending(loaded->index) == has_timer);
      if (has_timer) ++timers;
    }
    if (!page.more) break;
    after = page.tasks.back().place;
  }
  DETENT_CHECK(in_memory == loaded_.size() && in_memory == loaded_by_id_.size());
  DETENT_CHECK(timers == due_wheel_.size());
  DETENT_CHECK(waits_.size() == wait_wheel_.size() && waits_.size() == waits_by_id_.size());
  std::size_t leased = 0;
  for (const auto& [name, queue] : queues_) {
    leased += queue->leased;
    DETENT_CHECK(queue->counts.waiting == found[name].waiting);
    DETENT_CHECK(queue->counts.dead == found[name].dead);
    for (LoadedTask* task : queue->ready) DETENT_CHECK(task->state == TaskState::ready);
  }
  DETENT_CHECK(leased == leases_.size());
  for (const auto& [number, task] : leases_) {
    DETENT_CHECK(task->state == TaskState::leased && task->lease == number);
  }
}

}  // namespace detent
