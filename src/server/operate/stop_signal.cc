#include "server/operate/stop_signal.h"

#include <pthread.h>

namespace detent::server {

StopSignal::StopSignal() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGUSR1);
  sigaddset(&signals_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

StopSignal::~StopSignal() { pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr); }

const char* StopSignal::wait(const SignalHandlers& handlers) {
  int received = 0;
  while (sigwait(&signals_, &received) != 0 || received == SIGUSR1 || received == SIGHUP) {
    if (received == SIGUSR1) handlers.on_drain();
    if (received == SIGHUP) handlers.on_reload();
  }
  pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  return received == SIGTERM ? "SIGTERM" : "SIGINT";
}

}  // namespace detent::server
