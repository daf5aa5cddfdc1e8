// Worker: leases due tasks of one queue, calls a function for each of them, and reports the result
// to the server.
//
//     const auto handle = [](const detent::WorkTask& task) -> detent::WorkResult {
//       if (!cancel_order(task.task.key)) return detent::Retry{.error = "busy", .delay = 5min};
//       return detent::Done{};
//     };
//     detent::Worker worker(client, "orders", handle, {.concurrency = 4});
//     worker.run();                                                   // until SIGTERM
//
// If a handler returns Done, its task is completed. If it returns Retry or throws, the attempt has
// failed, and the task is tried again; after its last attempt the task is dead. If it returns Dead,
// the task is dead immediately. The worker extends its leases every third of the visibility
// timeout, so a handler may take as long as it needs. While the server or a shard of a cluster is
// away, the worker goes on: it tries to extend its leases, and repeats the report of a result until
// the lease of the task has expired.
//
// Delivery is at least once. After a crash of the worker or the server, a task can be delivered
// again. Handlers must therefore tolerate a second run.
//
// Threads: one thread leases, one thread extends leases, and `concurrency` threads run the handler.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include "detent/client.h"

namespace detent {

/// The task that a handler works on.
struct WorkTask {
  client::LeasedTask task;
  /// A stop is requested when the work is no longer wanted: the lease was lost, or the `grace` of
  /// stop() is over. The handler should then return soon. The worker does not report its result.
  std::stop_token abandoned;
};

/// The result of a handler that completed its task.
struct Done {};
/// The result of a failed attempt. The task is tried again after `delay`, unless this was its last
/// attempt. A delay of 0 or less means immediately; a delay above 136 years is shortened to 136
/// years. Without a value, the task's backoff applies.
struct Retry {
  std::string error = {};
  std::optional<std::chrono::milliseconds> delay = {};
};
/// The result of a failed attempt after which further attempts are useless. The task is dead.
struct Dead {
  std::string error = {};
};
/// The result of a handler.
using WorkResult = std::variant<Done, Retry, Dead>;

/// Options of a Worker.
struct WorkerOptions {
  /// The number of handler threads, each with one task. Requires: above 0.
  std::size_t concurrency = 1;
  /// The number of tasks that the worker leases in advance, so that a free thread has a task
  /// immediately. Useful for short tasks.
  std::size_t prefetch = 0;
  /// The length of a lease. If this process dies, its leases expire after this time. Each expired
  /// lease counts as a failed attempt, and the task is handed out again after its backoff.
  /// Requires: above 0.
  std::chrono::milliseconds visibility_timeout{60'000};
  /// The longest wait of one lease call for a task; at most 60 s.
  std::chrono::milliseconds wait{20'000};
  /// The name of this worker, for people. "": the host name and the process id.
  std::string name = {};
  /// Receives errors of failed calls, and a `conflict` for each lost lease. Called from any of the
  /// worker's threads. Must not throw.
  std::function<void(const ClientError&)> on_error = [](const ClientError&) {};
};

/// Works on one queue. Thread-safe. A Worker runs once: call start() and stop(), or run().
///
/// In a child process of fork() the threads of the parent's worker do not exist. There, `stop` and
/// the destructor do nothing, and `start` stops the process. Make workers after the fork.
class Worker {
 public:
  /// Called from `concurrency` threads in parallel. An exception counts as Retry, with the what()
  /// of a std::exception as the error.
  using Handler = std::function<WorkResult(const WorkTask&)>;

  /// Requires: `client` outlives the worker. Does not start threads yet.
  Worker(Client& client, std::string queue, Handler handler, WorkerOptions options = {});
  /// Calls stop().
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Starts the threads and returns immediately. Requires: the worker was not started before.
  void start();
  /// Stops leasing, releases tasks that no handler has begun, and waits up to `grace` for running
  /// handlers. Tasks that still run then are abandoned and released, so another worker can lease
  /// them immediately. The call returns when these handlers have returned. Idempotent. Requires:
  /// not called by a handler.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds{30});
  /// Calls start(), waits for SIGTERM or SIGINT, then calls stop(grace). The call blocks these two
  /// signals for its own thread and for the worker's threads. Requires: all other threads of the
  /// program block them too (pthread_sigmask). Otherwise the system may deliver the signal to such
  /// a thread, and it ends the process.
  void run(std::chrono::milliseconds grace = std::chrono::seconds{30});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detent
