#include "tests/durability/power_cut_run.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "detent/check.h"
#include "store/rocksdb/open_store.h"
#include "store/testing/forwarding_store.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kMostAttempts = 3;
// A start does about this many file operations, so random cuts in this range reach every part of
// it.
constexpr std::uint32_t kOperationsOfStart = 100;
constexpr std::uint32_t kOperationsOfWork = 120;
constexpr int kMostSteps = 1'000;

/// The limits are small, so that each run writes, settles and compacts tables.
RocksDbStoreOptions store_options(const std::string& path, bool settle_inline) {
  return {.path = path,
          .cache_bytes = 1 << 20,
          .write_buffer_bytes = 64 << 10,
          .settle_tasks = 32,
          .settle_inline = settle_inline};
}

/// A store that reports success for each batch, even if the write failed.
class DeafStore final : public ForwardingStore {
 public:
  explicit DeafStore(std::unique_ptr<Store> store) noexcept
      : ForwardingStore(*store), owned_(std::move(store)) {}

  Result<void> write(const WriteBatch& batch, Durability durability) override {
    static_cast<void>(store_.write(batch, durability));
    return ok();
  }

 private:
  std::unique_ptr<Store> owned_;
};

}  // namespace

PowerCutRun::PowerCutRun(std::uint64_t seed, Options options) : rng_(seed), options_(options) {
  std::filesystem::create_directory(folder_ / "backing");
  std::filesystem::create_directory(folder_ / "data");
}

PowerCutRun::~PowerCutRun() { stop(); }

WallTime PowerCutRun::wall_now() const {
  return std::chrono::floor<milliseconds>(clock_.wall_now());
}

void PowerCutRun::cut_power(int cuts) {
  for (int i = 0; i < cuts && findings_.empty(); ++i) {
    boot();
    const bool in_start = one_in(4);
    if (in_start) disk_->cut_at(1 + rng_.below(kOperationsOfStart));
    cut_at_settle_step_ = one_in(4) ? settle_steps_ + 1 + rng_.below(10) : 0;
    if (start()) {
      const bool in_settle = cut_at_settle_step_ != 0;
      if (!in_start && !in_settle) disk_->cut_at(1 + rng_.below(kOperationsOfWork));
      work(kMostSteps);
    }
    cut();
    cut_at_settle_step_ = 0;
  }
  if (!findings_.empty()) return;
  boot();
  if (start()) drain();
  stop();
}

void PowerCutRun::break_disk(DiskFault fault, std::uint64_t n) {
  had_bad_disk_ = true;
  boot();
  const bool in_start = one_in(4);
  if (in_start) arm(fault, n);
  if (start()) {
    if (!in_start) {
      work(20);
      arm(fault, n);
    }
    work(kMostSteps);
  }
  stop();
  disk_->heal();
  if (one_in(2) && start()) work(20);
  cut();
  boot();
  if (start()) drain();
  stop();
}

// ---- the machine ----

void PowerCutRun::boot() {
  env_.reset();
  disk_ = std::make_unique<PowerCutFileSystem>(folder_ / "data", folder_ / "backing", options_.lie);
  env_ = make_env(*disk_);
}

void PowerCutRun::arm(DiskFault fault, std::uint64_t n) {
  switch (fault) {
    case DiskFault::sync_fails:
      return disk_->fail_syncs_from(n);
    case DiskFault::append_fails:
      return disk_->fail_appends_from(n);
    case DiskFault::no_space:
      return disk_->limit_space(n);
  }
}

/// Returns true if the engine has started and there are no findings. Without a fault it must start.
bool PowerCutRun::start() {
  if (const Result<void> opened = open(); !opened) {
    stop();
    ++stops_;
    if (disk_->is_off() || disk_->has_failed()) return false;
    const std::string& message = opened.error().message;
    if (had_bad_disk_ &&
        message.find("in file " + (folder_ / "data/MANIFEST-")) != std::string::npos) {
      ++refused_;
    } else {
      find("does not start: " + message);
    }
    return false;
  }
  check_after_start();
  return findings_.empty();
}

Result<void> PowerCutRun::open() {
  const RocksDbStoreOptions in_folder = store_options(folder_ / "data", one_in(2));
  const auto at_step = [this](StoreStep /*step*/, rocksdb::DB& /*db*/) {
    if (++settle_steps_ == cut_at_settle_step_) disk_->turn_off();
  };
  ASSIGN_OR_RETURN(store_, OpenStore::open(in_folder, {.env = env_.get(), .at_step = at_step}));
  if (options_.ignores_errors) store_ = std::make_unique<DeafStore>(std::move(store_));
  const EngineOptions options{.window = std::chrono::minutes{1},
                              .max_loaded = one_in(2) ? std::size_t{8} : std::size_t{1'000},
                              .sync_interval = options_.sync_interval,
                              .seed = rng_.next()};
  ASSIGN_OR_RETURN(engine_, Engine::open(*store_, clock_, options));
  return ok();
}

void PowerCutRun::check_after_start() {
  for (std::string& what : history_.compare([this](TaskId id) { return look_up(id); })) {
    find(std::move(what));
  }
  check_totals();
  if (findings_.empty() && !disk_->is_off()) engine_->check_invariants();
}

/// Compares the numbers of tasks, so that tasks that were never created are found too.
void PowerCutRun::check_totals() {
  std::uint64_t live = 0;
  std::uint64_t dead = 0;
  for (const QueueStats& queue : engine_->stats().queues) {
    live += queue.scheduled + queue.ready + queue.leased;
    dead += queue.dead;
  }
  std::uint64_t known_dead = 0;
  const std::vector<TaskId> present = history_.present();
  for (const TaskId id : present) {
    if (history_.latest(id)->is_dead) ++known_dead;
  }
  if (dead == known_dead && live + dead == present.size()) return;
  find("totals: " + std::to_string(live) + " live and " + std::to_string(dead) + " dead, not " +
       std::to_string(present.size() - known_dead) + " and " + std::to_string(known_dead));
}

void PowerCutRun::stop() {
  engine_.reset();
  store_.reset();
  for (const LeasedTask& leased : leases_) stale_.push_back(leased.lease);
  leases_.clear();
}

void PowerCutRun::cut() {
  disk_->turn_off();  // before closing the store, because a power cut does not close it
  stop();
  disk_->cut(rng_, one_in(2) ? Tear::bytes : Tear::sectors);
  ++cuts_;
}

// ---- work ----

void PowerCutRun::work(int steps) {
  for (int i = 0; i < steps && !is_stopped() && findings_.empty(); ++i) {
    step();
    if (one_in(3)) turn();
  }
  if (engine_->stopped_by()) ++stops_;
}

bool PowerCutRun::turn() {
  end_leases();
  return engine_->turn().has_value() && !engine_->stopped_by();
}

/// Records the effect of the next turn on expired leases.
void PowerCutRun::end_leases() {
  const auto runs_out = [this](const LeasedTask& leased) {
    return leased.lease_until <= wall_now();
  };
  for (const LeasedTask& leased : leases_) {
    if (!runs_out(leased)) continue;
    TaskHistory::State state = history_.latest(leased.task.id);
    DETENT_CHECK(state.has_value());
    state->attempts = leased.attempt;
    state->is_dead = leased.attempt >= kMostAttempts;
    state->due_at = state->is_dead ? WallTime{} : wall_now();
    note(leased.task.id, std::move(state));
  }
  std::erase_if(leases_, runs_out);
}

void PowerCutRun::step() {
  const std::uint32_t choice = rng_.below(16);
  if (choice < 6) {
    schedule();
  } else if (choice < 8) {
    lease();
  } else if (choice < 11) {
    do_with_lease();
  } else if (choice < 14) {
    do_with_task();
  } else if (choice < 15) {
    do_with_queue();
  } else {
    clock_.advance(milliseconds{rng_.below(4'000)});
  }
}

milliseconds PowerCutRun::any_delay() {
  return milliseconds{one_in(3) ? rng_.below(3'600'000) : rng_.below(5'000)};
}

void PowerCutRun::schedule() {
  std::string payload = std::to_string(++payloads_) + " ";
  payload.append(one_in(10) ? rng_.below(40'000) : rng_.below(2'000), 'x');
  const ScheduleRequest request{
      .queue = any_queue(),
      .payload = {.kind = Payload::Kind::bytes, .data = std::move(payload)},
      .rules = {.priority = rng_.below(3),
                .max_attempts = kMostAttempts,
                .visibility_timeout = std::chrono::seconds{10},
                .backoff = Backoff{.initial = milliseconds{0}, .max = milliseconds{0}}},
      .due = any_delay()};
  const Result<TaskSnapshot> view = engine_->schedule(request);
  if (!view) return;
  const TaskId id = view->task.id;
  if (history_.knows(id)) find("id given twice: " + to_string(id));
  KnownTask known = known_task(*view);
  known.payload = request.payload.data;
  note(id, std::move(known));
  engine_->after_commit([this](const Result<void>& committed) {
    if (committed) ++accepted_;
  });
}

void PowerCutRun::lease() {
  const Result<std::vector<LeasedTask>> tasks =
      engine_->lease({.queue = any_queue(), .max = 1 + rng_.below(3)});
  if (!tasks) return;
  for (const LeasedTask& leased : *tasks) {
    check_hand_out(leased);
    leases_.push_back(leased);
  }
}

void PowerCutRun::check_hand_out(const LeasedTask& leased) {
  const std::string name = to_string(leased.task.id);
  const TaskHistory::State known = history_.latest(leased.task.id);
  if (!known) return find("handed out, never asked for or removed: " + name);
  if (known->is_dead) find("handed out, dead: " + name);
  if (known->attempts + 1 != leased.attempt) find("handed out with a wrong attempt: " + name);
  if (known->payload != leased.task.payload.data) find("handed out with another payload: " + name);
  if (wall_now() < known->due_at) find("handed out early: " + name);
  const auto has_it = [&leased](const LeasedTask& other) {
    return other.task.id == leased.task.id;
  };
  if (std::ranges::any_of(leases_, has_it)) find("handed out twice: " + name);
}

/// A lease of an earlier start must not be accepted.
void PowerCutRun::do_with_stale_lease() {
  const LeaseToken lease = stale_[rng_.below(static_cast<std::uint32_t>(stale_.size()))];
  const Result<LeaseOutcome> outcome = engine_->complete(lease);
  if (!is_stopped() && outcome != LeaseOutcome::conflict) find("a lease outlived its engine");
}

void PowerCutRun::do_with_lease() {
  if (leases_.empty()) return;
  if (!stale_.empty() && one_in(5)) return do_with_stale_lease();
  std::swap(leases_[rng_.below(static_cast<std::uint32_t>(leases_.size()))], leases_.back());
  const LeasedTask leased = leases_.back();
  const TaskId id = leased.task.id;
  leases_.pop_back();
  switch (rng_.below(5)) {
    case 0:
      if (engine_->fail({.lease = leased.lease, .delay = any_delay(), .error = "again"})) {
        note_as_it_is(id);
      }
      break;
    case 1:
      if (engine_->bury(leased.lease, "hopeless", rng_.below(3))) note_as_it_is(id);
      break;
    case 2:
      if (engine_->release(leased.lease, any_delay(), rng_.below(3))) note_as_it_is(id);
      return;
    default:
      if (engine_->complete(leased.lease) == LeaseOutcome::done) note(id, std::nullopt);
      return;
  }
  const TaskHistory::State known = history_.latest(id);
  if (!is_stopped() && known && known->attempts != leased.attempt) find("attempt not counted");
}

void PowerCutRun::do_with_task() {
  const std::vector<TaskId> present = history_.present();
  if (present.empty()) return;
  const TaskId id = present[rng_.below(static_cast<std::uint32_t>(present.size()))];
  switch (rng_.below(4)) {
    case 0:
      if (engine_->move(id, any_delay())) note_as_it_is(id);
      return;
    case 1:
      if (engine_->run_now(id)) note_as_it_is(id);
      return;
    case 2:
      if (engine_->redrive(id)) note_as_it_is(id);
      return;
    default:
      if (engine_->cancel(id)) note(id, std::nullopt);
  }
}

void PowerCutRun::do_with_queue() {
  const Result<QueueStep> step = one_in(10) ? engine_->purge(any_queue(), 1 + rng_.below(10))
                                            : engine_->redrive(any_queue(), 1 + rng_.below(3));
  if (!step || step->count == 0) return;
  for (const TaskId id : history_.present()) note_as_it_is(id);
}

/// Leases and completes each live task once. Dead tasks stay.
void PowerCutRun::drain() {
  clock_.advance(std::chrono::hours{2});
  for (bool is_idle = false; !is_idle && findings_.empty();) {
    if (!turn()) return find("stopped: " + engine_->stopped_by()->message);
    is_idle = !engine_->next_wakeup() || *engine_->next_wakeup() > clock_.now();
    for (const char* queue : {"q", "r"}) {
      const Result<std::vector<LeasedTask>> tasks = engine_->lease({.queue = queue, .max = 100});
      if (!tasks) return find("stopped: " + tasks.error().message);
      for (const LeasedTask& leased : *tasks) {
        is_idle = false;
        check_hand_out(leased);
        if (engine_->complete(leased.lease) == LeaseOutcome::done) {
          note(leased.task.id, std::nullopt);
        }
      }
    }
  }
  for (const TaskId id : history_.present()) {
    if (!history_.latest(id)->is_dead) find("never handed out: " + to_string(id));
  }
  check_totals();
}

TaskHistory::State PowerCutRun::look_up(TaskId id) {
  const Result<TaskSnapshot> view = engine_->get(id);
  if (view) return known_task(*view);
  if (view.error().code != ErrorCode::not_found) find("unreadable: " + view.error().message);
  return std::nullopt;
}

/// Notes the answer to an operation. The next commit acknowledges it.
void PowerCutRun::note(TaskId id, TaskHistory::State state) {
  const std::uint64_t change = history_.answered(id, std::move(state));
  engine_->after_commit([this, change](const Result<void>& committed) {
    if (committed) history_.acknowledged(change);
  });
}

/// For operations whose answer does not contain the whole new state of the task: reads the task.
void PowerCutRun::note_as_it_is(TaskId id) {
  const Result<TaskSnapshot> view = engine_->get(id);
  if (view) return note(id, known_task(*view));
  if (view.error().code == ErrorCode::not_found) note(id, std::nullopt);
}

}  // namespace detent
