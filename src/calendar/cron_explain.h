// Cron rules in plain English: "At 09:00 and 17:00 on Monday to Friday in January".
#pragma once

#include <string>

#include "calendar/cron_parser.h"

namespace detent {

/// Returns a sentence without the full stop and without the time zone.
std::string explain_cron(const CronRule& rule);

}  // namespace detent
