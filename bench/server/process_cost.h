// The cost of a process so far, from the kernel: CPU time, and how often its threads went to sleep.
// They woke up as often.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace detent::bench {

/// Sums over threads.
struct ProcessCost {
  double cpu_microseconds = 0;
  double wakeups = 0;  ///< voluntary context switches

  friend ProcessCost operator-(const ProcessCost& left, const ProcessCost& right) {
    return {left.cpu_microseconds - right.cpu_microseconds, left.wakeups - right.wakeups};
  }
};

/// The threads of `process`, except the thread with the id `left_out`.
inline ProcessCost process_cost(pid_t process, pid_t left_out = 0) {
  ProcessCost sum;
  const std::filesystem::path threads = "/proc/" + std::to_string(process) + "/task";
  for (const auto& thread : std::filesystem::directory_iterator(threads)) {
    if (thread.path().filename() == std::to_string(left_out)) continue;
    double nanoseconds = 0;
    std::ifstream(thread.path() / "schedstat") >> nanoseconds;
    sum.cpu_microseconds += nanoseconds / 1e3;
    std::ifstream status(thread.path() / "status");
    const std::string wanted = "voluntary_ctxt_switches:";
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(wanted)) sum.wakeups += std::stod(line.substr(wanted.size()));
    }
  }
  return sum;
}

}  // namespace detent::bench
