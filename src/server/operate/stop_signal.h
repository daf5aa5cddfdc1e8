// The signals of a server, as a blocking wait.
#pragma once

#include <csignal>
#include <functional>

namespace detent::server {

/// Handlers of signals that do not stop the server. They run on the waiting thread.
struct SignalHandlers {
  std::function<void()> on_drain;   // SIGUSR1
  std::function<void()> on_reload;  // SIGHUP
};

/// Make it before any thread. Threads that are started later block these signals, so that only the
/// waiting thread receives them. After the first stop signal, the signals have their default effect
/// again: a second stop signal ends the process immediately. SIGPIPE is ignored from then on, so
/// that a closed log pipe does not end the server.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Blocks until the process receives SIGTERM or SIGINT. Returns the signal's name.
  const char* wait(const SignalHandlers& handlers);

 private:
  sigset_t signals_{};
};

}  // namespace detent::server
