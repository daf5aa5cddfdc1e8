// The schedule and the records of storm_bench, in this process (storm_bench.cc) and over HTTP
// (storm_server.h).
#pragma once

#include <chrono>

namespace detent::bench {

/// A task of "calm" is due in each millisecond of this time. It counts from the start.
inline constexpr std::chrono::milliseconds kCalmFor{23'000};
/// The tasks of "storm" are due in this second. It counts from the start.
inline constexpr std::chrono::milliseconds kStormAfter{12'000};
inline constexpr std::chrono::seconds kStormFor{1};
inline constexpr int kCalmWorkers = 4;

using Lateness = std::chrono::duration<double, std::milli>;

/// The due time of a task of "calm", from the start, and how late a worker received it.
struct Seen {
  std::chrono::milliseconds due;
  Lateness lateness;
};

}  // namespace detent::bench
