// Why a task was handed out after it was due. The time from its due time to its hand-out is split
// among four causes, so that the parts add up; which part is whose is decided in
// src/engine/lateness_account.h. A due time that had passed when it was asked for counts from then
// on: that is nobody's fault.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace detent {

/// Their order is that of the stored record.
enum class LatenessCause : std::uint8_t {
  before_start,  // it was due before the server started: that was down, or nobody took it before
  engine,        // the server had not come to it
  limit,         // a pause, rate or concurrency of its queue held it back, or the leases in all
  worker,        // it was ready and no worker asked, nor the deliverer of webhooks
};
inline constexpr std::size_t kLatenessCauses = 4;
/// "before_start", "engine", "limit", "worker".
std::string_view to_string(LatenessCause cause) noexcept;

/// A value for each cause.
template <class T>
using ByCause = std::array<T, kLatenessCauses>;

/// What a hand-out this late, or later, is called: late.
inline constexpr std::chrono::seconds kLate{1};

/// The parts of one hand-out's lateness. All 0: it was not late, or nobody knows any more.
using LatenessParts = ByCause<std::chrono::milliseconds>;

/// The cause of the largest part; of equal ones the first.
LatenessCause main_cause(const ByCause<std::chrono::nanoseconds>& parts) noexcept;

/// The hand-outs since the server started.
struct LateCounts {
  ByCause<std::uint64_t> tasks{};             // late ones, by the cause of the largest part
  ByCause<std::chrono::milliseconds> time{};  // of all, by cause

  friend bool operator==(const LateCounts&, const LateCounts&) = default;
};

}  // namespace detent
