// Reads the data files of this folder. Each line is an entry. Empty lines and lines that begin with
// # are skipped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace detent::oracle {

/// Returns the entries of a file. Stops the test program if there are none.
std::vector<std::string> lines_of(std::string_view file_name);

/// Splits a line at each `separator`.
std::vector<std::string> parts_of(std::string_view line, std::string_view separator);

}  // namespace detent::oracle
