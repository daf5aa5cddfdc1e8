// Worker: takes what is due from one queue of a server, hands it to a function, reports what became
// of it.
//
//     const auto handle = [](const detent::WorkTask& task) -> detent::WorkResult {
//       if (!cancel_order(task.task.key)) return detent::Retry{.error = "busy", .delay = 5min};
//       return detent::Done{};
//     };
//     detent::Worker worker(client, "orders", handle, {.concurrency = 4});
//     worker.run();                                                   // until SIGTERM
//
// A handler that returns Done has completed its task; one that returns Retry, or throws, has failed
// it, and the task comes again. Leases are extended while tasks are held, at every third of the
// visibility timeout, so a handler may take as long as it needs. While the server, or a shard of a
// cluster, is away the worker keeps its leases, and repeats what it reports until the lease has run
// out. Delivery is at least once: after a crash of either side a task comes again, and a handler
// must bear that.
//
// Threads: one that leases, one that extends, `concurrency` that run the handler.
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

/// A task as its handler sees it.
struct WorkTask {
  client::LeasedTask task;
  /// Stop is requested when the work is not wanted any more: the lease was lost, or stop() waits no
  /// longer. What the handler returns then is not reported.
  std::stop_token abandoned;
};

/// The task is done.
struct Done {};
/// The attempt failed with this error, and the task comes again after `delay` (at once when that is
/// not positive; at most 136 years), else its backoff.
struct Retry {
  std::string error = {};
  std::optional<std::chrono::milliseconds> delay = {};
};
using WorkResult = std::variant<Done, Retry>;

struct WorkerOptions {
  /// Tasks worked on at once, each by a thread. Requires: positive.
  std::size_t concurrency = 1;
  /// Tasks leased besides, so that the next is there when one is done; for short tasks.
  std::size_t prefetch = 0;
  /// When this process dies, its tasks come again after so long. Requires: positive.
  std::chrono::milliseconds visibility_timeout{60'000};
  /// How long a lease waits for a task; at most 60 s.
  std::chrono::milliseconds wait{20'000};
  /// For people to see; "": this host's and process's.
  std::string name = {};
  /// Told of calls that failed and of leases that were lost (conflict), by any of the threads; must
  /// not throw.
  std::function<void(const ClientError&)> on_error = [](const ClientError&) {};
};

/// Thread-safe. Runs once: start() and stop(), or run(). In a child process of fork() the threads
/// of the parent's worker do not exist: `stop` and the destructor do nothing, and `start` stops the
/// process. Make workers after the fork.
class Worker {
 public:
  /// Called by `concurrency` threads at once. Throwing is Retry, with what() of a std::exception.
  using Handler = std::function<WorkResult(const WorkTask&)>;

  /// `client` must outlive it.
  Worker(Client& client, std::string queue, Handler handler, WorkerOptions options = {});
  /// stop().
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Begins; returns at once. Requires: not started before.
  void start();
  /// Leases no more, releases what no handler has begun, and waits up to `grace` for the handlers.
  /// What still runs then is abandoned and released, so that another worker takes it at once; it
  /// returns when those handlers have seen it and returned. Idempotent. Requires: not called by a
  /// handler.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds{30});
  /// start(), and stop(grace) once the process gets SIGTERM or SIGINT. Requires: the threads that
  /// other parts of the program have started block these signals, as those made after it do.
  void run(std::chrono::milliseconds grace = std::chrono::seconds{30});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detent
