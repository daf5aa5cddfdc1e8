// Limits the messages in flight to each sink, and decides when a failed sink is tried again.
//
// A sink at its limit, or a failed sink, is *held*: the tasks of its queues are not leased. They
// stay unleased and in their order, however long this takes. A sink at its limit is released when
// half of its room is free again. A failed sink is released after a pause, which doubles with each
// failure in a row. The next tasks are the trial: the sink is held again until all their messages
// are answered and some succeeded. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "detent/clock.h"
#include "sinks/sink.h"

namespace detent {

struct SinkLimits {
  std::size_t max_under_way = 1'024;  // to one sink; a take may bring some more
  std::chrono::milliseconds first_pause{500};
  std::chrono::milliseconds longest_pause{30'000};
};

/// How a send ended. `refused`: the broker refused this message. `failed`: every message would fail
/// now.
enum class SendEnd : std::uint8_t { delivered, refused, failed };
inline constexpr std::size_t kSendEnds = 3;

struct SinkStats {
  std::uint64_t ended[kSendEnds] = {};  // NOLINT(modernize-avoid-c-arrays): by SendEnd
  std::uint64_t under_way = 0;
  bool is_up = true;  // the last that was answered was
};

/// Invariants: a sink has failures exactly when it has a pause, and its last answer was a failure.
/// Thread-compatible.
class SinkLines {
 public:
  /// Of these names.
  SinkLines(const Sinks& sinks, SinkLimits limits, std::uint64_t seed);

  void begin(const std::string& name);
  /// Returns whether it is up now and was not, or the other way round.
  /// Requires: begin() for it.
  bool finish(const std::string& name, SendEnd end, MonotonicTime now);

  /// The webhooks of queues with a held sink, sorted.
  std::vector<std::string> held(MonotonicTime now);
  /// When held() may give another answer without a send having ended.
  std::optional<MonotonicTime> next_wakeup(MonotonicTime now) const;
  const std::map<std::string, SinkStats>& stats() const noexcept { return stats_; }

 private:
  struct Line {
    std::uint32_t failures = 0;  // in a row, a pause each
    MonotonicTime try_at{};      // when the pause is over
    bool is_full = false;
  };

  bool is_held(Line& line, std::size_t under_way, MonotonicTime now) const;
  void pause(Line& line, MonotonicTime now);

  const SinkLimits limits_;
  Rng rng_;
  std::map<std::string, Line> lines_;
  std::map<std::string, SinkStats> stats_;  // of the same names
};

}  // namespace detent
