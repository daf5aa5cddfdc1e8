// Prints tables with aligned columns that fit the width of a terminal.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace detent::cli {

/// The number of columns that `text` takes on a terminal. A character takes one column, a wide
/// character of East Asia two, a combining character none. A byte that is not UTF-8 takes one.
std::size_t width_of(std::string_view text);
/// Returns `text`. If it is wider than `width` columns, it is cut and ends in an ellipsis.
/// Requires: width > 0.
std::string cut_to(const std::string& text, std::size_t width);

/// One row of cells. The first row of a table has the headings.
using Row = std::vector<std::string>;
/// Prints a table with two spaces between columns and no spaces at the end of a line.
void show_table(std::ostream& out, const std::vector<Row>& rows);
/// Prints a table that is at most `columns` wide; 0 means no limit. `cuts` are the numbers, from 0,
/// of the table columns that may be cut. The first of them is cut to eight characters before the
/// next one is cut. If the table is still too wide, whole lines are cut. `drops` are table columns
/// that are left out, one after the other, before the first of `cuts` is cut to less than 24
/// characters. Requires: if there are `drops`, each row has all table columns, and `cuts` has one.
void show_table(std::ostream& out, std::vector<Row> rows, std::size_t columns,
                std::initializer_list<std::size_t> cuts,
                std::initializer_list<std::size_t> drops = {});

}  // namespace detent::cli
