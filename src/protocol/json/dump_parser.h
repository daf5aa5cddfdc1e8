// Lines of a dump (dump.h) from text, strictly: a field that does not exist, comes twice, is
// missing or out of its bounds is refused by name. What a queue's name, a key or the rules may be
// beyond that is checked by validate(), as for every task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json/dump.h"

namespace detent::json {

/// Errors: invalid_argument, with the field named from outside in ("task.priority").
Result<DumpLine> parse_dump_line(std::string_view text);

/// What a line is, by the name of its first member, when it is one whole JSON object. For who
/// passes lines on: reads no further, so what a newer program adds to a task is no matter.
enum class DumpLineKind : std::uint8_t { queue, task, damaged, schedule, next, end };
Result<DumpLineKind> kind_of_dump_line(std::string_view text);
void count_line(LineCounts& counts, DumpLineKind kind) noexcept;

/// A line of a body, numbered from 1 with blank lines counted.
struct NumberedLine {
  std::size_t number = 0;
  std::string_view text;
};
/// The lines that hold something. They point into `body`. Errors: too_large when there are more
/// than `most`.
Result<std::vector<NumberedLine>> take_numbered_lines(std::string_view body, std::size_t most);

}  // namespace detent::json
