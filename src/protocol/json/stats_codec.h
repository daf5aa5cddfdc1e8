// Writes and reads the answers that are mostly numbers: statistics, forecast and wheel. As in
// answer_codec.h, the parse functions are for clients.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "protocol/json/answer.h"
#include "task/forecast.h"
#include "task/wheel_view.h"

namespace detent::json {

/// The answer of `GET /v1/stats`.
std::string render_stats(const ServerStats& stats);
Result<ServerStats> parse_stats(std::string_view body);

/// The answer of `GET /v1/forecast`.
std::string render_forecast(const Forecast& forecast);
Result<Forecast> parse_forecast(std::string_view body);

/// The answer of `GET /v1/wheel`.
std::string render_wheel(const WheelView& wheel);
Result<WheelView> parse_wheel(std::string_view body);

}  // namespace detent::json
