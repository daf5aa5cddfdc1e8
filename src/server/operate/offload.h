// Assembles the parts that hand far tasks to an external scheduler, from the command line options.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "external/far_tasks.h"
#include "external/offload_thread.h"

namespace detent::server {

struct OffloadOptions {
  std::string url;     // empty: far tasks stay here
  std::string folder;  // Store::identity() of the tasks that are here
  std::chrono::milliseconds after = std::chrono::hours{24};
  std::chrono::milliseconds window = std::chrono::minutes{10};
};

/// The times when tasks are handed over and handed back. The external scheduler can be down for
/// half of `after` before a task is late. Errors: invalid_argument if `after` is below twice the
/// window, or below 1 s.
Result<FarTasksOptions> far_tasks_options(const OffloadOptions& options);

/// Starts the thread. Returns null if `url` is empty. The external scheduler need not be reachable
/// yet. Events are logged. `engine` and `clock` must outlive it. Errors: invalid_argument, also for
/// the url.
Result<std::unique_ptr<OffloadThread>> start_offload(const OffloadOptions& options,
                                                     EngineThread& engine, Clock& clock);

}  // namespace detent::server
