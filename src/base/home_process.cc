#include "base/home_process.h"

#include <pthread.h>

namespace detent::internal {

std::atomic<std::uint32_t> forks{0};

namespace {

/// If there is no memory for the handler, children of fork() are not noticed.
void watch_forks() noexcept {
  static const int watched =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(watched);
}

}  // namespace

HomeProcess::HomeProcess() noexcept : forks_(0) {
  watch_forks();
  forks_ = forks.load(std::memory_order_relaxed);
}

}  // namespace detent::internal
