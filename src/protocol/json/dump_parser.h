// Reads the lines of a dump (dump.h) from text, strictly. A field that is unknown, repeated,
// missing or out of range is an error that names the field. validate() checks the other limits of
// queue names, keys and rules, as for every task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json/dump.h"

namespace detent::json {

/// Errors: invalid_argument. The field is a path from the outermost member, such as
/// "task.priority".
Result<DumpLine> parse_dump_line(std::string_view text);

/// The kind of a line, which is the name of its main member. Checks only that the line is one JSON
/// object. Use it to pass lines on: it accepts fields that a newer program adds to a task.
enum class DumpLineKind : std::uint8_t { queue, task, damaged, schedule, next, end };
Result<DumpLineKind> kind_of_dump_line(std::string_view text);
void count_line(LineCounts& counts, DumpLineKind kind) noexcept;

/// A line of a body. Numbers start at 1, and blank lines count.
struct NumberedLine {
  std::size_t number = 0;
  std::string_view text;
};
/// Returns the lines that are not blank. They point into `body`. Errors: too_large if there are
/// more than `most` lines.
Result<std::vector<NumberedLine>> take_numbered_lines(std::string_view body, std::size_t most);

}  // namespace detent::json
