// Why a task was handed out after its due time. The time from the due time to the hand-out is split
// among four causes, and the parts add up. src/engine/queues/lateness_account.h decides the cause
// of each part. If the due time had passed when it was requested, lateness counts from the request,
// because the earlier time has no cause in the server.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace detent {

/// The order is fixed, because stored records use it.
enum class LatenessCause : std::uint8_t {
  before_start,  // due before the server started: the server was down, or no worker took the task
                 // before the stop
  engine,        // the engine had not handled the task yet
  limit,         // a pause, rate or concurrency of the queue, or the limit of all leases
  worker,        // the task was ready, but neither a worker nor the deliverer asked for it
};
inline constexpr std::size_t kLatenessCauses = 4;
/// "before_start", "engine", "limit", "worker".
std::string_view to_string(LatenessCause cause) noexcept;

/// A value for each cause.
template <class T>
using ByCause = std::array<T, kLatenessCauses>;

/// A hand-out is late from this lateness on.
inline constexpr std::chrono::seconds kLate{1};

/// The parts of one hand-out's lateness. All 0: the hand-out was not late, or the parts are no
/// longer known.
using LatenessParts = ByCause<std::chrono::milliseconds>;

/// The cause of the largest part. If several parts are the largest, the first of them.
LatenessCause main_cause(const ByCause<std::chrono::nanoseconds>& parts) noexcept;

/// The hand-outs since the server started.
struct LateCounts {
  ByCause<std::uint64_t> tasks{};             // late hand-outs, by the cause of the largest part
  ByCause<std::chrono::milliseconds> time{};  // the time of all hand-outs, by cause

  friend bool operator==(const LateCounts&, const LateCounts&) = default;
};

}  // namespace detent
