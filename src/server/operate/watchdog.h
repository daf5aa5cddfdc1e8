// Tells the service manager regularly that the server works. The server works if each engine's
// thread answers, the previous commit has ended, and the store can be read. If the server hangs,
// the messages stop and the manager starts a new process.
//
// A failed store does not stop the messages: the engine opens the store again by itself, and still
// answers requests.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "base/thread.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "engine/thread/engine_thread.h"
#include "server/operate/service_manager.h"

namespace detent::server {

/// Does nothing, and starts no thread, if the manager has no watchdog.
class Watchdog {
 public:
  /// Runs its argument, on any thread, once all parts are seen to work. Never runs it while a part
  /// hangs.
  using Ask = std::function<void(UniqueFunction<void()> works)>;

  /// All arguments must outlive this; `manager` must also outlive the engine's thread.
  Watchdog(const ServiceManager& manager, EngineThread& engine, Clock& clock);
  /// As above; the parts that `ask` asks must also outlive this. For a server with several engines.
  Watchdog(const ServiceManager& manager, Ask ask, Clock& clock);
  /// Ends its thread. The engine may still get one last question.
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

  // These members synchronize themselves.
  Doorbell bell_;
  /// Set by the destructor before it rings, read by the thread after it wakes up. The bell orders
  /// the two accesses.
  std::atomic<bool> is_stopping_ = false;
  /// True while the engine has not answered. Set by this thread, cleared by the engine's thread; no
  /// other data depends on the flag. Shared with the question, which may be answered after this
  /// object is gone.
  std::shared_ptr<std::atomic<bool>> is_asked_ = std::make_shared<std::atomic<bool>>(false);

  Thread thread_;
};

}  // namespace detent::server
