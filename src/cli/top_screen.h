// What `detent top` shows, as a pure function of two looks at a server and the size of the
// terminal.
//
// Time is the server's: rates are differences of its counters over the difference of its uptimes,
// so neither its clock nor ours matters, and a look that came late is no dip. A server that was
// started anew counts from nothing, and so does the first look: its rates are averages since the
// start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/json/answer.h"

namespace detent::cli {

/// By what queues are sorted; each has a key that chooses it.
enum class TopOrder : std::uint8_t { ready, late, scheduled, leased, dead, name };
/// Nothing for keys that choose none.
std::optional<TopOrder> order_of_key(char key) noexcept;

/// What happened between two looks.
struct TopRates {
  double accepted = 0;  // a second, as the others
  double fired = 0;
  double completed = 0;
  double failed = 0;
  double dead = 0;
  /// How late half and 99 of 100 of the tasks fired; bounds that are up to twice as much. None:
  /// none fired.
  std::optional<std::chrono::microseconds> late_half;
  std::optional<std::chrono::microseconds> late_most;
};
/// `before` is an earlier look; one of an earlier run of the server is not looked at.
TopRates rates_between(const json::ServerStats& before, const json::ServerStats& now);

struct TopView {
  std::string server;
  json::ServerStats before;
  json::ServerStats now;
  TopOrder order = TopOrder::ready;
  std::string trouble;  // why the last look failed; empty: it did not
};
/// At most `height` lines of at most `width` columns; the last one tells the keys when `height` is
/// enough for all else. Requires: width >= 1.
std::vector<std::string> render_top(const TopView& view, std::size_t width, std::size_t height);
/// The same on one line, for what is no terminal.
std::string render_top_line(const TopView& view);

}  // namespace detent::cli
