#include "engine/engine_thread.h"

#include <algorithm>
#include <utility>

namespace detent {

EngineThread::EngineThread(std::unique_ptr<Engine> engine, Clock& clock,
                           UniqueFunction<void(const Error&)> on_stopped)
    : clock_(clock),
      engine_(std::move(engine)),
      on_stopped_(std::move(on_stopped)),
      thread_([this] { run(); }) {}

EngineThread::~EngineThread() { stop(); }

bool EngineThread::post(Command command) {
  {
    const MutexLock lock(mutex_);
    if (stopping_ || commands_.size() >= kMaxCommands) return false;
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
  clock_.wait(bell_, std::min(engine_->next_wakeup().value_or(look_at_clock), look_at_clock));
}

void EngineThread::run() {
  for (bool going_on = true; going_on;) {
    std::vector<Command> commands;
    going_on = take_commands(commands);  // once it is false nothing more can be posted
    engine_->notice_clock();
    for (Command& command : commands) command(*engine_);
    const Result<void> turned = engine_->turn();
    if (!turned && on_stopped_) std::exchange(on_stopped_, {})(turned.error());
    if (going_on) sleep();
  }
  engine_->end_waits();
  (void)engine_->commit();  // whoever waits for it is told how it went
}

}  // namespace detent
