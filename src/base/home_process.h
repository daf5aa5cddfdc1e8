// HomeProcess tells an object with threads whether it is still in the process that created it.
//
// fork() copies an object into the child process, but not the object's threads. If the child waited
// for such a thread, the wait would never end. A handler of pthread_atfork() informs the child.
// getpid() would cost a system call for each check.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace detent::internal {

/// The number of fork() calls between the first process that created a HomeProcess and this
/// process. The handler of fork() writes it in the child, before other code runs there. Relaxed
/// loads are enough, because a child begins with one thread. It is not behind a mutex, because
/// every call on a timer reads it.
extern std::atomic<std::uint32_t> forks;

/// Immutable. A check costs a load and a comparison.
class HomeProcess {
 public:
  /// The current process.
  HomeProcess() noexcept;
  /// Matches every process. For an object without threads.
  static HomeProcess any() noexcept { return HomeProcess(kAny); }

  /// True if the current process is a child that fork() created after this object.
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
