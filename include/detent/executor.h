// Where the jobs of a Scheduler run: on the thread that drives it, or on a pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "detent/unique_function.h"

namespace detent {

/// Runs jobs. Implementations are thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Runs `job` exactly once, on a thread of its choice, perhaps before it returns. May throw when
  /// it cannot: a Scheduler gives the exception to its error handler and runs the job on its driver
  /// thread.
  /// Requires: `job` does not throw (the scheduler's do not: it catches what its users throw).
  virtual void execute(Job job) = 0;
};

/// Runs each job at once on the thread that hands it over: with a Scheduler, its driver thread. A
/// slow job delays every timer behind it; use it for short ones.
class InlineExecutor final : public Executor {
 public:
  void execute(Job job) override { job(); }
};

/// What happens to a job when the queue of a ThreadPool has no room for it. Nothing is lost either
/// way and memory stays bounded; under a Scheduler the timers behind it are late until the pool has
/// caught up.
enum class WhenPoolFull : std::uint8_t {
  run_in_caller,  // it runs at once on the thread that hands it over
  block,          // that thread waits until there is room; not one of the pool's: there it runs
};

struct ThreadPoolOptions {
  std::size_t threads = 0;      // 0: as many as the machine has processors
  std::size_t capacity = 4096;  // jobs waiting; Requires: at least 1
  WhenPoolFull when_full = WhenPoolFull::run_in_caller;
};

/// A fixed number of threads that take jobs from one bounded queue, first in first out.
/// Thread-safe. A child process of fork() does not have the threads: there `execute` stops the
/// process with a message, and the destructor leaves the queue and its jobs as they are.
class ThreadPool final : public Executor {
 public:
  /// Throws std::system_error when the threads cannot be started.
  explicit ThreadPool(ThreadPoolOptions options = {});
  /// Runs what is still queued, then joins its threads. Requires: not called by one of them.
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void execute(Job job) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detent
