#include "server/stop_signal.h"

#include <pthread.h>

namespace detent::server {

StopSignal::StopSignal() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

StopSignal::~StopSignal() { pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr); }

const char* StopSignal::wait(const std::function<void()>& on_drain) {
  int received = 0;
  while (sigwait(&signals_, &received) != 0 || received == SIGUSR1) {
    if (received == SIGUSR1) on_drain();
  }
  pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  return received == SIGTERM ? "SIGTERM" : "SIGINT";
}

}  // namespace detent::server
