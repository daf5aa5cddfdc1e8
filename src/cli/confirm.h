// Asks a person before something that cannot be taken back.
#pragma once

#include <string_view>

#include "cli/commands.h"

namespace detent::cli {

/// Asks `question` on the error stream, which leaves standard output to results, and reads a line:
/// only "y" and "yes" mean yes.
bool confirm(const Streams& streams, std::string_view question);

}  // namespace detent::cli
