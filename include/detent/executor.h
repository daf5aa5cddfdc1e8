// Executors: where the jobs of a Scheduler run, either on its driver thread or on a pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "detent/unique_function.h"

namespace detent {

/// Runs jobs. Implementations must be thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Runs `job` exactly once, on a thread of its choice, possibly before this call returns. May
  /// throw if it cannot run the job. A Scheduler then passes the exception to its error handler and
  /// runs the job on its driver thread. Requires: `job` does not throw. (Jobs from a Scheduler
  /// never throw, because it catches exceptions of its users' jobs.)
  virtual void execute(Job job) = 0;
};

/// Runs each job immediately on the calling thread. With a Scheduler this is the driver thread, and
/// a slow job delays every later timer. Use it for short jobs.
class InlineExecutor final : public Executor {
 public:
  void execute(Job job) override { job(); }
};

/// The policy for a job if the queue of a ThreadPool is full. With both policies every job runs and
/// the memory is bounded. If a Scheduler uses the pool, later timers are late until the pool has
/// caught up.
enum class WhenPoolFull : std::uint8_t {
  run_in_caller,  // run the job immediately on the calling thread
  block,          // block the calling thread until there is room; a thread of the pool runs the job
};

/// Options of a ThreadPool.
struct ThreadPoolOptions {
  std::size_t threads = 0;      // 0: one thread per processor
  std::size_t capacity = 4096;  // number of waiting jobs; Requires: at least 1
  WhenPoolFull when_full = WhenPoolFull::run_in_caller;
};

/// A fixed number of threads that take jobs from one bounded queue, first in, first out.
/// Thread-safe. A child process of fork() does not have these threads. There, `execute` stops the
/// process with a message, and the destructor leaves the queue and its jobs untouched.
class ThreadPool final : public Executor {
 public:
  /// Starts the threads. Throws std::system_error if they cannot be started.
  explicit ThreadPool(ThreadPoolOptions options = {});
  /// Runs all queued jobs, then joins the threads. Requires: not called by one of these threads.
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Adds a job to the queue; `when_full` decides what happens if the queue is full.
  void execute(Job job) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detent
