// The body of `GET /v1/stats` to values: the one answer that is mostly numbers. See
// answer_parser.h.
#pragma once

#include <string_view>

#include "base/result.h"
#include "protocol/json/answer.h"

namespace detent::json {

Result<ServerStats> parse_stats(std::string_view body);

}  // namespace detent::json
