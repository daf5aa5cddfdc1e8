// Lines of a dump (dump.h) as text, and the answer to a restore. A line that is written is read
// back by dump_parser.h, value for value, and written again as the same bytes.
#pragma once

#include <string>

#include "protocol/json/dump.h"

namespace detent::json {

/// Appends the line and its line feed; the text between has none.
void append_dump_line(std::string& out, const DumpLine& line);

/// `POST /v1/restore`.
std::string render_restored(const RestoreAnswer& answer);

}  // namespace detent::json
