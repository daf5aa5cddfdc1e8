// How much may be under way to each sink, and when one that failed is tried again.
//
// A sink that has as much as it may have, or that failed, is *held*: the engine is not asked for
// the tasks of its queues, so these stay where they are, unleased and in their order, however long
// it takes. It is no longer held when half of its room is free again; after a failure once a pause
// is over, which doubles with each failure in a row. What is taken then is the trial: until all of
// it has been answered, and some of it well, the sink is held again. Pure.
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

/// How a send ended: `refused`: this message alone; `failed`: whatever is sent would fail.
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

  /// What a queue's webhook is that goes to one of those which are held, sorted.
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
