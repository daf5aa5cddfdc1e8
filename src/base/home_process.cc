#include "base/home_process.h"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace detent::internal {

std::atomic<std::uint32_t> forks{0};

namespace {

/// If there is no memory for the handler, children of fork() are not noticed. Windows has no
/// fork().
void watch_forks() noexcept {
#if defined(__unix__) || defined(__APPLE__)
  static const int watched =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(watched);
#endif
}

}  // namespace

HomeProcess::HomeProcess() noexcept : forks_(0) {
  watch_forks();
  forks_ = forks.load(std::memory_order_relaxed);
}

}  // namespace detent::internal
