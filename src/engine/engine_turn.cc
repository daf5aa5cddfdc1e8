// What happens by itself as time passes: firing, leases that run out, waiting workers, the commit,
// and the load window.
#include <algorithm>
#include <limits>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "task/lifecycle.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Timers fired or moved in one go, so that requests and commits come between in a storm: about a
/// millisecond. More when turns are long, or firing would fall behind: for half of the time since
/// the last turn, but no longer than this.
constexpr std::size_t kFireLimit = 2'000;
constexpr milliseconds kMostFireTime{10};
/// So many fired in one turn are a storm.
constexpr std::uint64_t kStormTasks = 16;
/// Leases ended in one turn: their records are read and written whole.
constexpr std::size_t kLeaseEndLimit = 256;
/// How long a lease that ran out waits when the store could not be read.
constexpr milliseconds kReadRetry{1'000};
/// Tasks handed to waiting workers in one go, but for those of the last answer; a KiB of payload
/// counts as one, too. About a millisecond.
constexpr std::size_t kServeLimit = 256;
/// Tasks that a worker is handed at once while workers of other queues wait, and so long after:
/// they are at work, and will wait again.
constexpr std::size_t kShare = 128;
constexpr Tick kSharedTicks = 1'000;
/// Ids left out at a start whose commits are not synced at once: more than are given out between
/// two syncs, so that none of those that a power cut made be forgotten is given out again.
constexpr std::uint64_t kIdsUnsynced = std::uint64_t{1} << 26;
/// How often what is kept for a time only is looked through, and how much of it in one turn.
constexpr Tick kForgetTicks = 1'000;
constexpr std::size_t kForgetLimit = 1'000;
/// Pages loaded before the engine is open: overdue tasks at hand, and a start that stays short
/// however long the backlog.
constexpr int kFirstPages = 160;

}  // namespace

// ---- open ----

Engine::Engine(Store& store, Clock& clock, EngineOptions options)
    : store_(store),
      clock_(clock),
      options_(options),
      time_(clock),
      opened_at_(clock.now()),
      rng_(options.seed),
      last_id_(store.last_id().on_shard(options.shard)),
      last_queue_number_(store.last_queue_number()),
      due_wheel_(time_.now()),
      wait_wheel_(time_.now()),
      keys_(store) {
  DETENT_CHECK(options.max_loaded > 0);
  DETENT_CHECK(options.shard < std::uint64_t{1} << TaskId::kShardBits);
}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::open(Store& store, Clock& clock, EngineOptions options) {
  std::unique_ptr<Engine> engine(new Engine(store, clock, options));
  TRY(engine->recover());
  return engine;
}

Result<void> Engine::recover() {
  ASSIGN_OR_RETURN(epoch_, store_.begin_epoch());
  // Nobody ends a wait with the name of one of an earlier engine.
  last_wait_ = epoch_ << 32;
  if (options_.sync_interval > milliseconds{0}) {
    last_id_.value += kIdsUnsynced << TaskId::kShardBits;
    // Before one of them is given out: a power cut may come before the first sync.
    TRY(store_.write({.last_id = last_id_}, Durability::synced));
  }
  ASSIGN_OR_RETURN(const std::vector<QueueRecord> records, store_.queues());
  for (const QueueRecord& record : records) {
    Queue& queue = queue_of(record.queue);
    queue.record = record;
    queue.set_number(record.number);
    note_counts(queue);
    note_limits(queue);
    want_delivery(queue);
  }
  ASSIGN_OR_RETURN(const std::vector<DueCount> due_counts, store_.due_counts());
  due_counts_.restore(due_counts);
  TRY(restore_schedules());
  next_forget_ = time_.now() + kForgetTicks;
  for (int page = 0; page < kFirstPages && wants_page(); ++page) TRY(load_page());
  if (options_.keep_leases) TRY(take_up_leases());
  return ok();
}

// ---- the turn ----

Result<void> Engine::turn() {
  const MonotonicTime start = clock_.now();
  if (!stopped_by_) {
    notice_clock();
    decide_schedules();
    serve_due();
  }
  const std::uint64_t fired = counters_.fired - std::exchange(fired_before_turn_, counters_.fired);
  const bool is_storm = fired >= kStormTasks;
  TRY(commit());
  TRY(sync_if_due());
  TRY(tend_memory(start, is_storm ? Load::storm : Load::usual));
  if (staging_.empty()) publish_changes(ok());  // what became ready as it was loaded
  refresh_schedules();
  look_for_orphans();
  return forget_ended();
}

std::optional<MonotonicTime> Engine::next_wakeup() const {
  if (!after_commit_.empty()) return clock_.now();
  if (stopped_by_) return std::nullopt;
  const bool has_deliveries = delivery_wait_ != nullptr && !to_deliver_.empty();
  if (!staging_.empty() || !to_serve_.empty() || has_deliveries || ready_count_ > ready_room() ||
      wants_page() || next_behind_cut() != nullptr) {
    return clock_.now();
  }
  std::optional<Tick> next = due_wheel_.next_wakeup();
  const auto take_earlier = [&next](std::optional<Tick> tick) {
    if (tick && (!next || *tick < *next)) next = tick;
  };
  take_earlier(wait_wheel_.next_wakeup());
  if (!is_out_of_room_ || room_for_pages() > 0) {
    take_earlier(time_.tick_at(loaded_to_.at - options_.window / 2));
  }
  for (const Queue* queue : cut_queues_) take_earlier(time_.tick_at(queue->cut_to.at));
  if (!serve_at_.empty()) take_earlier(serve_at_.begin()->first);
  if (const std::optional<WallTime> wake = schedules_.next_wake()) {
    take_earlier(time_.tick_at(std::max(*wake, time_.wall_now())));
  }
  std::optional<MonotonicTime> wakeup;
  if (next) wakeup = time_.when(*next);
  if (unsynced_since_) {
    const MonotonicTime sync_at = *unsynced_since_ + options_.sync_interval;
    wakeup = std::min(wakeup.value_or(sync_at), sync_at);
  }
  return wakeup;
}

/// What is due becomes ready, and goes to those who wait for it.
void Engine::serve_due() {
  fire_due();
  if (is_deliverers_turn_) serve_delivery_wait();
  serve_waits();
  serve_delivery_wait();
}

void Engine::catch_up() {
  notice_clock();
  if (stopped_by_) return;
  const Tick now = time_.now();
  for (const LoadedTask* task : fire_tasks(now)) due_wheel_.schedule(task->index, now);
}

/// Makes ready what is due, or a part of it; returns the tasks whose leases have run out.
std::vector<Engine::LoadedTask*> Engine::fire_tasks(Tick now) {
  std::vector<LoadedTask*> ran_out;
  const auto fire_task = [&](std::uint32_t index) {
    LoadedTask& task = loaded_[index];
    if (task.state == TaskState::leased) {
      ran_out.push_back(&task);
    } else {
      become_ready(task);
    }
  };
  const MonotonicTime start = clock_.now();
  const MonotonicTime until =
      start + std::min<MonotonicTime::duration>((start - last_fired_) / 2, kMostFireTime);
  last_fired_ = start;
  while (due_wheel_.advance(now, fire_task, kFireLimit).more && clock_.now() < until) {
  }
  return ran_out;
}

void Engine::fire_due() {
  const Tick now = time_.now();
  std::vector<LoadedTask*> ran_out = fire_tasks(now);
  while (ran_out.size() > kLeaseEndLimit) {
    due_wheel_.schedule(ran_out.back()->index, now);  // in the next turn
    ran_out.pop_back();
  }
  end_leases(ran_out);

  while (!serve_at_.empty() && serve_at_.begin()->first <= now) {
    Queue& queue = *serve_at_.begin()->second;
    serve_at_.erase(serve_at_.begin());
    queue.serve_at = 0;
    want_serving(queue);
  }

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
    run_out(leases_.at(ran_out[i]->lease), *std::move(record));
  }
}

void Engine::notice_clock() {
  if (!time_.notice_step()) return;
  schedules_.clock_stepped(time_.wall_now());
  loaded_.for_each([this](LoadedTask& task) {
    if (task.state != TaskState::scheduled || !task.follows_wall) return;
    task.tick = time_.tick_at(task.due_at);
    due_wheel_.schedule(task.index, task.tick);
  });
}

// ---- waiting workers ----

void Engine::want_serving(Queue& queue) {
  want_delivery(queue);
  if (queue.waits.empty() || std::exchange(queue.to_serve, true)) return;
  to_serve_.push_back(&queue);
}

/// A limit holds the queue's tasks back: looks again when the next second begins, or the pause
/// ends.
void Engine::serve_later(Queue& queue) {
  if (queue.serve_at != 0) return;
  queue.serve_at = std::max(HandOutRate::next(time_.now()), queue.paused_until);
  serve_at_.emplace(queue.serve_at, &queue);
}

/// The same, unless it is one who must do something: an operator, or who holds a lease.
void Engine::hold_back(Queue& queue) {
  const QueueSettings& settings = queue.record.settings;
  const bool awaits_a_lease = settings.concurrency && queue.leased >= *settings.concurrency;
  if (!settings.paused && !awaits_a_lease) serve_later(queue);
}

/// How many tasks of the queue may go out in one answer: who has a backlog and asks for a thousand
/// would make the workers of other queues, if there are any, wait for as long as it takes to read
/// them.
std::size_t Engine::share_of(const Queue& queue) noexcept {
  const bool do_others_wait = waits_.size() > queue.waits.size();
  if (do_others_wait) shared_until_ = time_.now() + kSharedTicks;
  return time_.now() < shared_until_ ? kShare : std::numeric_limits<std::size_t>::max();
}

/// The queues take turns, each with as many answers as make up its share.
void Engine::serve_waits() {
  for (std::size_t served = 0; served < kServeLimit && !to_serve_.empty();) {
    Queue& queue = *to_serve_.front();
    to_serve_.pop_front();
    std::size_t share = serve_next(queue);
    while (share < kShare && queue.to_serve) {
      std::erase(to_serve_, &queue);
      share += serve_next(queue);
    }
    served += share;
    forget_if_unused(queue);
  }
}

/// Workers that wait for the queues of a request came before it.
void Engine::serve_waits_before(const LeaseRequest& request) {
  const auto serve = [this](const std::string& name) {
    const auto it = queues_.find(name);
    if (it == queues_.end()) return;
    Queue& queue = *it->second;
    for (std::size_t served = 0; served < kServeLimit && queue.to_serve;) {
      std::erase(to_serve_, &queue);
      served += serve_next(queue);
    }
    forget_if_unused(queue);
  };
  serve(request.queue);
  for (const std::string& name : request.other_queues) serve(name);
}

/// Serves the worker that has waited longest for a task of this queue, which was just taken out of
/// the ring; it is there again when there may be more to do. Returns the tasks handed out, with a
/// KiB of payload as one more.
std::size_t Engine::serve_next(Queue& queue) {
  queue.to_serve = false;
  if (queue.waits.empty() || !queue.has_work()) return 0;
  if (allowance(queue) == 0) {
    hold_back(queue);
    return 0;
  }
  Wait& wait = *queue.waits.begin()->second;
  Queue* from = &queue;
  if (wait.queues.size() > 1) {
    const Result<Queue*> first = most_urgent(wait.queues, &wait);
    if (first) from = *first;
  }
  std::size_t served = 0;
  if (from != nullptr) {
    Result<std::vector<LeasedTask>> tasks = take_ready(*from, from->ready, wait.request);
    // Empty: what was ready could not be read; it is set aside.
    if (!tasks || !tasks->empty()) {
      if (tasks) {
        is_deliverers_turn_ = true;
        for (const LeasedTask& task : *tasks) served += 1 + task.task.payload.data.size() / 1024;
      }
      finish_wait(wait, std::move(tasks));
    }
  }
  if (!queue.waits.empty() && queue.has_work()) want_serving(queue);
  return served;
}

void Engine::finish_wait(Wait& wait, Result<std::vector<LeasedTask>> answer) {
  const WaitId wait_id = wait.id;
  answer_after_commit(std::move(wait.done), std::move(answer));
  wait_wheel_.cancel(wait.index);
  const std::vector<Queue*> queues = std::move(wait.queues);
  waits_by_id_.erase(wait.id);
  waits_.erase(wait.index);
  for (Queue* const queue : queues) {
    queue->waits.erase(wait_id);
    forget_if_unused(*queue);
  }
}

// ---- the commit ----

void Engine::after_commit(Committed committed) { after_commit_.push_back(std::move(committed)); }

Result<void> Engine::commit() {
  Result<void> result = write_staged();
  publish_changes(result);
  if (stopped_by_) {
    waits_.for_each([this](Wait& wait) { finish_wait(wait, *stopped_by_); });
    end_delivery_wait(*stopped_by_);
  }
  for (Committed& committed : std::exchange(after_commit_, {})) committed(result);
  return result;
}

void Engine::publish_changes(const Result<void>& committed) {
  if (options_.changes == nullptr) return;
  if (committed) {
    options_.changes->publish();
  } else {
    options_.changes->drop();
  }
}

WriteBatch Engine::take_staged() {
  WriteBatch batch = staging_.take();
  for (Queue* queue : std::exchange(changed_queues_, {})) {
    queue->is_changed = false;
    note_counts(*queue);
    batch.queues.push_back(queue->record);
  }
  batch.removed_queues = std::exchange(removed_queues_, {});
  batch.keys = keys_.take();
  auto [schedules, removed_schedules] = schedules_.take_changes();
  batch.schedules = std::move(schedules);
  batch.removed_schedules = std::move(removed_schedules);
  batch.due_counts = due_counts_.take_changes();
  batch.last_id = last_id_;
  return batch;
}

Result<void> Engine::write_staged() {
  if (stopped_by_) return *stopped_by_;
  const WriteBatch batch = take_staged();
  const bool must_sync = std::exchange(must_sync_, false);
  // What must be synced may have been written before, but only buffered.
  if (batch.empty() && !must_sync) return ok();
  const bool is_synced = must_sync || options_.sync_interval == milliseconds{0};
  const MonotonicTime start = clock_.now();
  if (Result<void> written =
          store_.write(batch, is_synced ? Durability::synced : Durability::buffered);
      !written) {
    return stop_acknowledging(std::move(written).error());
  }
  if (!is_synced && !unsynced_since_) unsynced_since_ = start;
  commit_time_.record(clock_.now() - start);
  ++commits_;
  committed_tasks_ += batch.puts.size() + batch.erases.size();
  return ok();
}

/// Writes what moved between the lanes since the commit. Nobody was told of it, and a crash that
/// takes it back leaves the tasks where they were: it needs no sync.
Result<void> Engine::write_moved() {
  if (stopped_by_) return *stopped_by_;
  const WriteBatch batch = take_staged();
  if (batch.empty()) return ok();
  if (Result<void> written = store_.write(batch, Durability::buffered); !written) {
    return stop_acknowledging(std::move(written).error());
  }
  return ok();
}

Result<void> Engine::sync_if_due() {
  if (!unsynced_since_ || clock_.now() - *unsynced_since_ < options_.sync_interval) return ok();
  unsynced_since_.reset();
  if (Result<void> synced = store_.write({}, Durability::synced); !synced) {
    return stop_acknowledging(std::move(synced).error());
  }
  return ok();
}

Error Engine::stop_acknowledging(Error error) {
  error.code = ErrorCode::unavailable;
  stopped_by_ = with_context("the store failed, nothing is accepted until it is open again",
                             std::move(error));
  return *stopped_by_;
}

void Engine::set_aside(LoadedTask& task) {
  const Place place = task.place;
  Queue& queue = *task.queue;
  uncount(queue, task.id(), task.due_at, task.created_at, task.payload_bytes);
  if (place.lane == Lane::ready) --task.ready_tasks().in_lane;
  note_change(queue);
  unload(task);
  set_aside(place);
}

void Engine::set_aside(Place place) {
  ++counters_.quarantined;
  if (Result<void> moved = store_.quarantine(place); !moved) {
    stop_acknowledging(std::move(moved).error());
  }
}

/// Keys whose time is over, and tasks kept after their end. Looked for while the engine is at work
/// anyway: nobody waits for it.
Result<void> Engine::forget_ended() {
  if (time_.now() < next_forget_) return ok();
  next_forget_ = time_.now() + kForgetTicks;
  const WallTime now = time_.wall_now();
  const Result<std::size_t> trimmed = store_.trim_keys(now, kForgetLimit);
  if (!trimmed) return stop_acknowledging(trimmed.error());
  const Result<TaskPage> page = store_.read(
      forgotten_to_, last_at(Lane::ended, std::max(now, forgotten_to_.at)), kForgetLimit);
  if (!page) return ok();  // in the next second
  for (const StoredTask& stored : page->tasks) staging_.erase(stored.place);
  if (!page->tasks.empty()) forgotten_to_ = page->tasks.back().place;
  for (const Place& damaged : page->damaged) set_aside(damaged);
  if (*trimmed == kForgetLimit || page->more) next_forget_ = time_.now();
  return ok();
}

}  // namespace detent
