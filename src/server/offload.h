// Assembles what hands far tasks to another system, from what the command line says.
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

/// When tasks go and come back: half of `after` is how long the other system may be down without a
/// task being late. Errors: invalid_argument when `after` is below twice the window, or 1 s.
Result<FarTasksOptions> far_tasks_options(const OffloadOptions& options);

/// Starts the thread; null when there is no `url`. The other system need not be up. What happens is
/// logged. `engine` and `clock` must outlive it. Errors: invalid_argument, also for the url.
Result<std::unique_ptr<OffloadThread>> start_offload(const OffloadOptions& options,
                                                     EngineThread& engine, Clock& clock);

}  // namespace detent::server
