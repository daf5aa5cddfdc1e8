// Parses cron expressions. include/detent/cron.h has the table of the syntax.
#pragma once

#include <chrono>
#include <string_view>
#include <variant>

#include "calendar/cron_fields.h"
#include "detent/calendar_result.h"

namespace detent {

/// The fields of an expression, or the period of an "@every".
using CronRule = std::variant<CronFields, std::chrono::milliseconds>;

/// Parses an expression. Errors name the allowed values and the column. An expression that can
/// never match is an error.
Parsed<CronRule> parse_cron(std::string_view expression);

}  // namespace detent
