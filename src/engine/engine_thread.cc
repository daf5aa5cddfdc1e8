#include "engine/engine_thread.h"

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

void EngineThread::run() {
  for (bool going_on = true; going_on;) {
    std::vector<Command> commands;
    going_on = take_commands(commands);  // once it is false nothing more can be posted
    for (Command& command : commands) command(*engine_);
    const Result<void> turned = engine_->turn();
    if (!turned && on_stopped_) std::exchange(on_stopped_, {})(turned.error());
    if (going_on) clock_.wait(bell_, engine_->next_wakeup());
  }
  engine_->abandon_all_waits();
  (void)engine_->commit();  // whoever waits for it is told how it went
}

}  // namespace detent
