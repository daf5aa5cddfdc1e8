// Asks the user for confirmation before a change that cannot be undone.
#pragma once

#include <string_view>

#include "cli/commands/commands.h"

namespace detent::cli {

/// Prints `question` on the error stream, because standard output is for results, and reads a line.
/// Returns true for "y", "Y" and "yes" only.
bool confirm(const Streams& streams, std::string_view question);

}  // namespace detent::cli
