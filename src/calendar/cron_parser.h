// Reads cron expressions; include/detent/cron.h has the table of what they may hold.
#pragma once

#include <chrono>
#include <string_view>
#include <variant>

#include "calendar/cron_fields.h"
#include "detent/calendar_result.h"

namespace detent {

/// Fields, or the period of an "@every".
using CronRule = std::variant<CronFields, std::chrono::milliseconds>;

/// Errors say what is allowed, and at which column. An expression that can never happen is one.
Parsed<CronRule> parse_cron(std::string_view expression);

}  // namespace detent
