// SIGTERM and SIGINT as something to wait for.
#pragma once

#include <csignal>

namespace detent::server {

/// Make it before any thread: the threads made after it leave the signals to whoever waits here.
/// After the first signal both work as usual again, so a second one ends the process at once.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Blocks until the process is told to stop; returns the signal's name.
  const char* wait();

 private:
  sigset_t signals_{};
};

}  // namespace detent::server
