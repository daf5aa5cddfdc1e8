// Renders the screen of `detent top`: a pure function of two answers of the server and the size of
// the terminal.
//
// A rate is the difference of a counter divided by the difference of the uptimes in both answers.
// So it does not depend on a clock, and a late request does not change it. For the first answer,
// and after a restart of the server, rates are averages since the start of the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/json/answer.h"

namespace detent::cli {

/// The order of the queues. Each order has a key that chooses it.
enum class TopOrder : std::uint8_t { ready, late, scheduled, leased, dead, name };
/// The order of a key; nothing for other keys.
std::optional<TopOrder> order_of_key(char key) noexcept;

/// The activity of the server between two answers. Counts are per second.
struct TopRates {
  double accepted = 0;
  double fired = 0;
  double completed = 0;
  double failed = 0;
  double dead = 0;
  /// The lateness that 50 % and 99 % of the fired tasks did not exceed. These are upper bounds: the
  /// true values can be half as large. Nothing if no task fired.
  std::optional<std::chrono::microseconds> late_half;
  std::optional<std::chrono::microseconds> late_most;
};
/// `before` is an earlier answer. It is ignored if the server has restarted since.
TopRates rates_between(const json::ServerStats& before, const json::ServerStats& now);

struct TopView {
  std::string server;
  json::ServerStats before;
  json::ServerStats now;
  TopOrder order = TopOrder::ready;
  std::string trouble;  // error of the last request; empty: it succeeded
};
/// Returns at most `height` lines of at most `width` columns. The last line explains the keys if
/// `height` is large enough. Requires: width >= 1.
std::vector<std::string> render_top(const TopView& view, std::size_t width, std::size_t height);
/// The totals, rates and lateness on one line, for output to a pipe.
std::string render_top_line(const TopView& view);

}  // namespace detent::cli
