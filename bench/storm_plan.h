// What storm_bench does when, and what it notes, in this process (storm_bench.cc) and over HTTP
// (storm_server.h).
#pragma once

#include <chrono>

namespace detent::bench {

/// A task of "calm" is due in each millisecond of this time, from the start.
inline constexpr std::chrono::milliseconds kCalmFor{23'000};
/// The second in which the tasks of "storm" are due, from the start.
inline constexpr std::chrono::milliseconds kStormAfter{12'000};
inline constexpr std::chrono::seconds kStormFor{1};
inline constexpr int kCalmWorkers = 4;

using Lateness = std::chrono::duration<double, std::milli>;

/// When a task of "calm" was due, from the start, and how late a worker had it.
struct Seen {
  std::chrono::milliseconds due;
  Lateness lateness;
};

}  // namespace detent::bench
