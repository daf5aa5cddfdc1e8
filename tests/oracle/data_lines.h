// The data files of this folder: a line an entry; empty lines and those that begin with # are none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace detent::oracle {

/// Stops the test program when there are none.
std::vector<std::string> lines_of(std::string_view file_name);

/// What `separator` keeps apart.
std::vector<std::string> parts_of(std::string_view line, std::string_view separator);

}  // namespace detent::oracle
