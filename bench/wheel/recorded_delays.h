// Delays of real tasks, for a workload of timers_bench.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "detent/tick.h"

namespace detent::bench {

/// Returns the number after `"name":` in a line of JSON, or -1.
inline std::int64_t number_after(const std::string& line, const std::string& name) {
  const std::size_t at = line.find('"' + name + "\":");
  return at == std::string::npos ? -1 : std::atoll(line.c_str() + at + name.size() + 3);
}

/// Returns the delays in the file that DETENT_TRACE names, in ticks of a second. The file has a
/// line of JSON for each task, with `created` and `due` in seconds. Returns no delays without such
/// a file.
inline std::vector<Tick> recorded_delays() {
  const char* const path = std::getenv("DETENT_TRACE");
  std::vector<Tick> delays;
  if (path == nullptr) return delays;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    const std::int64_t created = number_after(line, "created");
    const std::int64_t due = number_after(line, "due");
    if (created >= 0 && due > created) delays.push_back(static_cast<Tick>(due - created));
  }
  if (delays.empty()) std::fprintf(stderr, "no delays in %s (it must not be compressed)\n", path);
  return delays;
}

}  // namespace detent::bench
