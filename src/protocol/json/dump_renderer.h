// Writes the lines of a dump (dump.h) and the answer to a restore as JSON text. dump_parser.h reads
// a line back into an equal value, and that value is written as the same bytes again.
#pragma once

#include <string>

#include "protocol/json/dump.h"

namespace detent::json {

/// Appends the line and a line feed. The text before the line feed has no line breaks.
void append_dump_line(std::string& out, const DumpLine& line);

/// The answer of `POST /v1/restore`.
std::string render_restored(const RestoreAnswer& answer);

}  // namespace detent::json
