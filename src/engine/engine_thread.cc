#include "engine/engine_thread.h"

#include <algorithm>
#include <utility>

namespace detent {

EngineThread::EngineThread(OpenEngine opened, Clock& clock, EngineEvents events)
    : clock_(clock),
      opened_(std::move(opened)),
      events_(std::move(events)),
      thread_([this] { run(); }) {}

EngineThread::~EngineThread() { stop(); }

bool EngineThread::post(Command command) { return post(std::move(command), Room::limited); }

void EngineThread::post_end(Command command) { (void)post(std::move(command), Room::always); }

bool EngineThread::post(Command command, Room room) {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return false;
    if (room == Room::limited && commands_.size() >= kMaxCommands) return false;
    commands_.push_back(std::move(command));
    if (commands_.size() > 1) return true;  // the first one rang
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
  if (thread_.joinable()) thread_.join();
}

bool EngineThread::take_commands(std::vector<Command>& commands) {
  const MutexLock lock(mutex_);
  commands.swap(commands_);
  return !stopping_;
}

/// The wall clock may be stepped, or the machine suspended, while we sleep, and nothing rings then.
void EngineThread::sleep() {
  const MonotonicTime look_at_clock = clock_.now() + kLongestSleep;
  clock_.wait(bell_,
              std::min(opened_.engine->next_wakeup().value_or(look_at_clock), look_at_clock));
}

void EngineThread::run() {
  for (bool going_on = true; going_on;) {
    std::vector<Command> commands;
    going_on = take_commands(commands);  // once it is false nothing more can be posted
    opened_.engine->catch_up();
    for (Command& command : commands) command(*opened_.engine);
    if (const Result<void> turned = opened_.engine->turn(); !turned) note_failure(turned.error());
    if (has_failed_) try_reopen();
    commands.clear();  // with what they hold, before a long sleep
    if (going_on) sleep();
  }
  (void)opened_.engine->close();  // whoever waits for a commit is told how it went
  opened_.engine.reset();
  opened_.store.reset();
}

void EngineThread::note_failure(const Error& error) {
  if (std::exchange(has_failed_, true)) return;
  if (events_.on_stopped) events_.on_stopped(error);
}

/// The failed engine goes on answering, always `unavailable` and without its store, until there is
/// another.
void EngineThread::try_reopen() {
  if (!events_.reopen || clock_.now() < next_reopen_) return;
  next_reopen_ = clock_.now() + kLongestSleep;
  opened_.store.reset();
  Result<OpenEngine> opened = events_.reopen();
  if (!opened) {
    if (events_.on_reopen_failed) events_.on_reopen_failed(opened.error());
    return;
  }
  opened_.engine = std::move(opened->engine);
  opened_.store = std::move(opened->store);
  has_failed_ = false;
  if (events_.on_reopened) events_.on_reopened();
}

}  // namespace detent
