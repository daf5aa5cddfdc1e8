#include "external/offload_thread.h"

#include <utility>

#include "base/rng.h"

namespace detent {

OffloadThread::OffloadThread(EngineThread& engine, std::unique_ptr<ExternalScheduler> external,
                             Clock& clock, const FarTasksOptions& options, OffloadEvents events)
    : clock_(clock),
      local_([&engine](EngineThread::Command command) { return engine.post(std::move(command)); }),
      external_(std::move(external)),
      far_(local_, *external_, clock, options, random_seed()),
      events_(std::move(events)),
      thread_([this] { run(); }) {}

OffloadThread::~OffloadThread() { stop(); }

bool OffloadThread::post(Command command) {
  {
    const MutexLock lock(mutex_);
    if (stopping_ || commands_.size() >= kMaxCommands) return false;
    commands_.push_back(std::move(command));
  }
  bell_.ring();
  return true;
}

OffloadStats OffloadThread::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

void OffloadThread::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  bell_.ring();
  const MutexLock lock(joining_);
  thread_.join();
}

bool OffloadThread::is_stopping() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

void OffloadThread::run() {
  MonotonicTime next_step = clock_.now();
  while (!is_stopping()) {
    const bool has_run = run_a_command();
    if (clock_.now() >= next_step) {
      next_step = step();
    } else if (!has_run) {
      clock_.wait(bell_, next_step);
    }
  }
}

bool OffloadThread::run_a_command() {
  Command command;
  {
    const MutexLock lock(mutex_);
    if (commands_.empty()) return false;
    command = std::move(commands_.front());
    commands_.pop_front();
  }
  command(far_);
  return true;
}

MonotonicTime OffloadThread::step() {
  const FarTasksStats before = far_.stats();
  const MonotonicTime next = far_.step();
  tell(before);
  note_stats();
  return next;
}

void OffloadThread::tell(const FarTasksStats& before) {
  const FarTasksStats& now = far_.stats();
  if (now.damaged > before.damaged && events_.on_damaged) events_.on_damaged(*now.last_damage);
  tell_loss(now.lost);
  const bool had_failed = before.failures_in_row > 0;
  if (now.failures_in_row == 0) {
    if (had_failed && events_.on_recovered) events_.on_recovered();
    return;
  }
  const bool is_as_before = had_failed && now.last_error->code == before.last_error->code;
  if (!is_as_before && events_.on_failed) events_.on_failed(*now.last_error);
}

/// Compares with the last reported state and not with the state before the step, because a command
/// may have noticed the loss before the step did.
void OffloadThread::tell_loss(const std::optional<Error>& lost) {
  if (lost.has_value() == is_loss_told_) return;
  is_loss_told_ = lost.has_value();
  if (lost && events_.on_lost) events_.on_lost(*lost);
  if (!lost && events_.on_loss_ended) events_.on_loss_ended();
}

void OffloadThread::note_stats() {
  std::optional<std::uint64_t> away;
  // After a failed step, size() would fail, too, and wait for its time limit.
  if (far_.stats().failures_in_row == 0) {
    if (const Result<std::uint64_t> size = external_->size()) away = *size;
  }
  const MutexLock lock(mutex_);
  stats_.moves = far_.stats();
  if (away) stats_.away = *away;
}

}  // namespace detent
