// The signals a server lives by, as something to wait for.
#pragma once

#include <csignal>
#include <functional>

namespace detent::server {

/// What is done at a signal that does not stop the server, by the thread that waits.
struct SignalHandlers {
  std::function<void()> on_drain;   // SIGUSR1
  std::function<void()> on_reload;  // SIGHUP
};

/// Make it before any thread: the threads made after it leave the signals to whoever waits here.
/// After the first signal to stop they work as usual again, so a second one ends the process at
/// once. SIGPIPE is ignored from then on: a log that nobody reads any more does not end the server.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Blocks until the process is told to stop, by SIGTERM or SIGINT; returns the signal's name.
  const char* wait(const SignalHandlers& handlers);

 private:
  sigset_t signals_{};
};

}  // namespace detent::server
