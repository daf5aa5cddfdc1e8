#include "engine/thread/engine_thread.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace detent {
namespace {

constexpr std::int64_t kMostSlowTurns = 4;

}  // namespace

EngineThread::EngineThread(OpenEngine opened, Clock& clock, EngineEvents events)
    : clock_(clock),
      opened_(std::move(opened)),
      events_(std::move(events)),
      thread_([this] { run(); }) {}

EngineThread::~EngineThread() { stop(); }

bool EngineThread::post(Command command, QueueOf queue) {
  return post({std::move(command), std::move(queue)}, Room::limited);
}

void EngineThread::post_end(Command command, QueueOf queue) {
  // Refused only when the thread stops, as the header says.
  (void)post({std::move(command), std::move(queue)}, Room::always);
}

void EngineThread::post_end_of_lease(Command command, QueueOf queue) {
  post_end(
      [this, command = std::move(command)](Engine& engine) mutable {
        if (engine.stopped_by()) {
          kept_.push_back(std::move(command));
        } else {
          command(engine);
        }
      },
      std::move(queue));
}

bool EngineThread::post(Posted posted, Room room) {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return false;
    if (room == Room::limited && commands_.size() + taken_ >= kMaxCommands) return false;
    commands_.push_back(std::move(posted));
    if (commands_.size() > 1) return true;  // the first command rang
  }
  bell_.ring();
  return true;
}

void EngineThread::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  bell_.ring();
  const MutexLock lock(joining_);
  thread_.join();
}

bool EngineThread::take_commands(std::vector<Posted>& posted) {
  const MutexLock lock(mutex_);
  posted.swap(commands_);
  taken_ = turns_.size() + posted.size();
  return !stopping_;
}

/// The commands of this slice have run, so as many new commands may wait.
void EngineThread::note_run() {
  const MutexLock lock(mutex_);
  taken_ = turns_.size();
}

/// The wall clock may be stepped, or the machine may be suspended, during the sleep. Neither rings
/// the bell.
void EngineThread::sleep() {
  const MonotonicTime look_at_clock = clock_.now() + kLongestSleep;
  clock_.wait(bell_,
              std::min(opened_.engine->next_wakeup().value_or(look_at_clock), look_at_clock));
}

void EngineThread::run() {
  for (bool going_on = true; going_on || !turns_.empty();) {
    std::vector<Posted> posted;
    going_on = take_commands(posted);  // after false, no command can be posted
    opened_.engine->catch_up();
    run_slice(posted);
    note_run();
    const MonotonicTime start = clock_.now();
    if (const Result<void> turned = opened_.engine->turn(); !turned) note_failure(turned.error());
    turn_took_ = clock_.now() - start;
    if (has_failed_) try_reopen();
    posted.clear();  // frees the captures before a long sleep
    run_.clear();
    if (going_on && turns_.empty()) sleep();
  }
  // All callbacks get the result of this commit. If it fails, the leases may not be stored.
  if (const Result<void> closed = opened_.engine->close(); !closed) note_failure(closed.error());
  opened_.engine.reset();
  opened_.store.reset();
}

/// Usually all posted commands fit into the slice, and the queues of the commands are not needed.
/// Finding the queues does not count into the slice of the waiting commands. Otherwise a flood of
/// posts would leave them no time.
void EngineThread::run_slice(std::vector<Posted>& posted) {
  Engine& engine = *opened_.engine;
  const bool has_turns = !turns_.empty();
  staged_before_ = engine.staged();
  auto next = posted.begin();
  MonotonicTime start = clock_.now();
  while (!has_turns && next != posted.end() && !is_over(start)) {
    (next++)->command(engine);
    engine.hand_out_due();
  }
  for (; next != posted.end(); ++next) {
    turns_.add(next->queue ? next->queue(engine) : std::string(), std::move(next->command));
  }
  start = clock_.now();
  while (has_turns && !turns_.empty() && !is_over(start)) {
    run_.push_back(turns_.take());
    run_.back()(engine);
    engine.hand_out_due();
  }
}

bool EngineThread::is_over(MonotonicTime slice_start) const {
  const bool is_shared = turns_.queues() > 1 || opened_.engine->has_waits();
  // Changes that the previous turn left do not count, so that every slice can run a command.
  const auto slow_turns =
      static_cast<std::size_t>(std::clamp<std::int64_t>(turn_took_ / kSlowTurn, 1, kMostSlowTurns));
  const std::size_t most = staged_before_ + slow_turns * kSharedChanges;
  if (is_shared && opened_.engine->staged() >= most) return true;
  const auto slice = std::clamp<MonotonicTime::duration>(
      turn_took_, is_shared ? kSharedSlice : kSlice, kLongestSlice);
  return clock_.now() - slice_start >= slice;
}

void EngineThread::note_failure(const Error& error) {
  if (std::exchange(has_failed_, true)) return;
  if (!events_.on_stopped) return;
  Error cause = error;
  const std::string context = std::string(kStoreFailed) + ": ";
  if (cause.message.starts_with(context)) cause.message.erase(0, context.size());
  events_.on_stopped(cause);
}

/// Closes the store and tries to open it again, at most once a second. Until this succeeds, the
/// failed engine stays in place and answers every verb with `unavailable`.
void EngineThread::try_reopen() {
  if (!events_.reopen || clock_.now() < next_reopen_) return;
  next_reopen_ = clock_.now() + kLongestSleep;
  opened_.store.reset();
  Result<OpenEngine> opened = events_.reopen();
  if (!opened) {
    if (events_.on_reopen_failed) events_.on_reopen_failed(opened.error());
    return;
  }
  opened->engine->take_over_leases(*opened_.engine);
  opened_.engine = std::move(opened->engine);
  opened_.store = std::move(opened->store);
  has_failed_ = false;
  for (Command& command : std::exchange(kept_, {})) command(*opened_.engine);
  if (events_.on_reopened) events_.on_reopened();
}

}  // namespace detent
