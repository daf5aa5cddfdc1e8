// Tables for people: columns that line up, and that fit a terminal where that can be.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace detent::cli {

/// How many columns of a terminal `text` takes: one a character, two for those of East Asia that
/// are wide, none for those that go onto the one before. What is no UTF-8 counts byte by byte.
std::size_t width_of(std::string_view text);
/// `text`, or as much of it as goes with an ellipsis into `width` columns. Requires: width > 0.
std::string cut_to(const std::string& text, std::size_t width);

/// Rows, the first one the heads; two blanks between columns, none at the end.
using Row = std::vector<std::string>;
void show_table(std::ostream& out, const std::vector<Row>& rows);
/// In at most `columns` (0: however many it takes): what is in the columns `cuts`, counted from 0,
/// is cut, the first of them as far as eight characters before the next is; then whole lines are.
void show_table(std::ostream& out, std::vector<Row> rows, std::size_t columns,
                std::initializer_list<std::size_t> cuts);

}  // namespace detent::cli
