// Reads the answers that are mostly numbers: statistics, forecast, wheel, and the counts of a
// restore. See answer_parser.h.
#pragma once

#include <string_view>

#include "base/result.h"
#include "protocol/json/answer.h"
#include "protocol/json/dump.h"
#include "task/forecast.h"
#include "task/wheel_view.h"

namespace detent::json {

Result<ServerStats> parse_stats(std::string_view body);
Result<Forecast> parse_forecast(std::string_view body);
Result<WheelView> parse_wheel(std::string_view body);
Result<RestoreAnswer> parse_restored(std::string_view body);

}  // namespace detent::json
