// SIGTERM, SIGINT and SIGUSR1 as something to wait for.
#pragma once

#include <csignal>
#include <functional>

namespace detent::server {

/// Make it before any thread: the threads made after it leave the signals to whoever waits here.
/// After the first signal to stop they work as usual again, so a second one ends the process at
/// once.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Blocks until the process is told to stop; returns the signal's name. Calls `on_drain` at each
  /// SIGUSR1 on the way.
  const char* wait(const std::function<void()>& on_drain);

 private:
  sigset_t signals_{};
};

}  // namespace detent::server
