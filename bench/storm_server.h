// The storm of storm_bench against `detent serve`, by workers who wait over HTTP: what users see.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "bench/storm_plan.h"

namespace detent::bench {

/// Runs the server in a new process on an empty folder, and the workers in threads of this one; one
/// connection each. Lateness ends when the answer has arrived. Throws ServerError when the server
/// does not start, refuses a request, or hands a task out early.
std::vector<Seen> storm_over_http(const std::filesystem::path& program,
                                  const std::filesystem::path& folder, std::size_t storm_tasks,
                                  int storm_workers);

}  // namespace detent::bench
