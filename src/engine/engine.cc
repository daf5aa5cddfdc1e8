// Opening and stopping an engine, and its commit. engine_turn.cc has the steps of a turn, and
// verbs/ has the verbs.
#include "engine/engine.h"

#include <utility>

#include "detent/check.h"
#include "engine/verbs/kept_leases.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

/// The ids skipped at a start, if commits are not synced immediately. This is more than the ids
/// used between two syncs. So if a power cut undoes the creation of tasks, their ids are not used
/// again.
constexpr std::uint64_t kIdsUnsynced = std::uint64_t{1} << 26;

}  // namespace

// ---- start ----

Engine::Engine(std::unique_ptr<EngineParts> parts)
    : TaskVerbs(*parts),
      QueueVerbs(*parts),
      HandOutVerbs(*parts),
      LeaseVerbs(*parts),
      ScheduleVerbs(*parts, *this),
      FarVerbs(*parts, *this),
      ListVerbs(*parts),
      FigureVerbs(*parts),
      parts_(std::move(parts)) {
  parts_->writer.write_beside([this] { return has_waits() && is_due_soon(); },
                              [this](Doorbell& written) { hand_out_until(written); });
}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::open(Store& store, Clock& clock, EngineOptions options) {
  std::unique_ptr<Engine> engine(
      new Engine(std::make_unique<EngineParts>(store, clock, std::move(options))));
  TRY(engine->recover());
  return engine;
}

Result<void> Engine::recover() {
  ASSIGN_OR_RETURN(parts_->epoch, parts_->store.begin_epoch());
  parts_->hand_out.begin(parts_->epoch);
  if (parts_->options.sync_interval > milliseconds{0}) {
    parts_->records.note_id(
        TaskId{parts_->records.last_id().value + (kIdsUnsynced << TaskId::kShardBits)});
    // This is stored before an id is used, because a power cut may come before the first sync.
    TRY(parts_->store.write({.last_id = parts_->records.last_id()}, Durability::synced));
  }
  ASSIGN_OR_RETURN(const std::vector<QueueRecord> records, parts_->store.queues());
  for (const QueueRecord& record : records) {
    Queue& queue = parts_->queues.restore(record);
    parts_->tasks.note_limits(queue);
    parts_->turns.want_delivery(queue);
  }
  ASSIGN_OR_RETURN(const std::vector<DueCount> due_counts, parts_->store.due_counts());
  parts_->records.due_counts().restore(due_counts);
  ASSIGN_OR_RETURN(std::vector<ScheduleRecord> schedules, parts_->store.schedules());
  parts_->records.schedules().restore(std::move(schedules));
  parts_->records.schedules().clock_stepped(parts_->time.wall_now());
  next_refresh_ = parts_->time.now() + kRefreshTicks;
  next_forget_ = parts_->time.now() + kForgetTicks;
  TRY(parts_->window.open());
  if (parts_->options.keep_leases) TRY(KeptLeases(*parts_).take_up());
  return ok();
}

void Engine::take_over_leases(const Engine& failed) {
  KeptLeases(*parts_).take_over(*failed.parts_);
}

// ---- commit ----

void Engine::after_commit(Committed committed) {
  // During a write, only the `done` of a wait could call this. The callback would then wait for the
  // wrong commit.
  DETENT_CHECK(!parts_->writer.is_writing());
  parts_->answers.after_commit(std::move(committed));
}

Result<void> Engine::commit() {
  DETENT_CHECK(!parts_->writer.is_writing());
  Result<void> result = parts_->records.commit();
  DETENT_CHECK(!result || parts_->records.staged().empty());
  parts_->news.publish(result);
  if (stopped_by()) parts_->hand_out.fail_waits(*stopped_by());
  parts_->answers.tell(result, [this] { hand_out_due(); });
  if (result) {
    parts_->hand_out.note_told();
    parts_->tasks.forget_ended_leases();
  }
  return result;
}

// ---- stop ----

Result<void> Engine::close() {
  end_waits();
  if (!stopped_by() && parts_->options.keep_leases) KeptLeases(*parts_).keep();
  return commit();
}

}  // namespace detent
