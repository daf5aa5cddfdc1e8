// HomeProcess: tells an object that has threads whether it is still in the process that made it.
//
// fork() copies an object into the child, but not its threads. A wait for such a thread would never
// end. pthread_atfork informs the child; getpid() would cost a system call for each look.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace detent::internal {

/// How many calls of fork() lie between this process and the first one that made a HomeProcess.
/// Written in a child by the handler of fork(), before any other code runs there. Relaxed reads:
/// a child begins with one thread. Not a mutex: every call on a timer looks here.
extern std::atomic<std::uint32_t> forks;

/// Immutable. A look is a load and a comparison.
class HomeProcess {
 public:
  /// The present process.
  HomeProcess() noexcept;
  /// Every process, for an object without threads.
  static HomeProcess any() noexcept { return HomeProcess(kAny); }

  /// Whether this is a child process that fork() made later.
  bool was_left() const noexcept {
    const std::uint32_t now = forks.load(std::memory_order_relaxed);
    if (now == forks_) [[likely]]
      return false;
    return forks_ != kAny;
  }

 private:
  static constexpr std::uint32_t kAny = std::numeric_limits<std::uint32_t>::max();

  explicit HomeProcess(std::uint32_t value) noexcept : forks_(value) {}

  std::uint32_t forks_;
};

}  // namespace detent::internal
