// Tells the service manager that the server works, as long as it does: each engine's thread
// answers, the commit before it has ended, and the store is read from. A server that hangs falls
// silent, and the manager starts another.
//
// A store that failed is no reason for a new start: the engine opens it again by itself, and
// answers meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "base/thread.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "engine/engine_thread.h"
#include "server/service_manager.h"

namespace detent::server {

/// Does nothing, without a thread, when the manager has no watchdog.
class Watchdog {
 public:
  /// Has its argument run, on any thread, once all is seen to work; never while something hangs.
  using Ask = std::function<void(UniqueFunction<void()> works)>;

  /// All must outlive this; `manager` also the engine's thread.
  Watchdog(const ServiceManager& manager, EngineThread& engine, Clock& clock);
  /// Likewise what `ask` asks. For a server with several engines.
  Watchdog(const ServiceManager& manager, Ask ask, Clock& clock);
  /// Ends its thread; the engine may still be asked one last time.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void run(std::chrono::microseconds interval);
  void ask();

  // Constant after construction.
  const ServiceManager& manager_;
  const Ask ask_;
  Clock& clock_;

  // Synchronise themselves.
  Doorbell bell_;
  /// Set by the destructor before it rings, read by the thread after it woke; the bell orders them.
  std::atomic<bool> is_stopping_ = false;
  /// The engine has not answered yet. Set by the thread, cleared by the engine's; only the flag
  /// itself matters. Shared with the question, which may be answered after this is gone.
  std::shared_ptr<std::atomic<bool>> is_asked_ = std::make_shared<std::atomic<bool>>(false);

  Thread thread_;
};

}  // namespace detent::server
