#include "server/operate/watchdog.h"

#include <utility>

namespace detent::server {

namespace {

Watchdog::Ask ask_of(EngineThread& engine) {
  return [&engine](UniqueFunction<void()> works) {
    engine.post_end(
        [works = std::move(works)](Engine& asked) mutable {
          (void)asked.get(TaskId{});  // of no task, so it is looked for in the store
          works();
        },
        EngineThread::own_line());
  };
}

}  // namespace

Watchdog::Watchdog(const ServiceManager& manager, EngineThread& engine, Clock& clock)
    : Watchdog(manager, ask_of(engine), clock) {}

Watchdog::Watchdog(const ServiceManager& manager, Ask ask, Clock& clock)
    : manager_(manager), ask_(std::move(ask)), clock_(clock) {
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
  ask_([&manager = manager_, is_asked = is_asked_] {
    manager.works();
    *is_asked = false;
  });
}

}  // namespace detent::server
