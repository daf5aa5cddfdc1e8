// The storm of storm_bench against `detent serve`, with workers that wait over HTTP, as for users.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "bench/server/storm_plan.h"

namespace detent::bench {

/// Runs the server in a new process on an empty folder. The workers are threads of this process,
/// with one connection each. Lateness ends when the answer arrives. Throws ServerError if the
/// server does not start, refuses a request, or hands out a task early.
std::vector<Seen> storm_over_http(const std::filesystem::path& program,
                                  const std::filesystem::path& folder, std::size_t storm_tasks,
                                  int storm_workers);

}  // namespace detent::bench
