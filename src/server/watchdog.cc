#include "server/watchdog.h"

namespace detent::server {

Watchdog::Watchdog(const ServiceManager& manager, EngineThread& engine, Clock& clock)
    : manager_(manager), engine_(engine), clock_(clock) {
  if (!manager.watchdog()) return;
  // Half of the time, as sd_watchdog_enabled(3) advises.
  thread_ = Thread([this, interval = *manager.watchdog() / 2] { run(interval); });
}

Watchdog::~Watchdog() {
  is_stopping_ = true;
  bell_.ring();
}

void Watchdog::run(std::chrono::microseconds interval) {
  for (MonotonicTime next = clock_.now(); !is_stopping_; next += interval) {
    clock_.wait(bell_, next);
    if (!is_stopping_) ask();
  }
}

/// One question at a time: an engine that hangs shall not find a heap of them.
void Watchdog::ask() {
  if (is_asked_->exchange(true)) return;
  engine_.post_end([&manager = manager_, is_asked = is_asked_](Engine& engine) {
    (void)engine.get(TaskId{});  // of no task, so it is looked for in the store
    manager.works();
    *is_asked = false;
  });
}

}  // namespace detent::server
