// The manual page, detent(1), from the table of commands. docs/reference/detent.1 is what this
// renders, by `detent man >docs/reference/detent.1`, and a test holds it to that.
#pragma once

#include <string>

#include "cli/command_table.h"

namespace detent::cli {

/// In the man macros of roff.
std::string render_man_page(const CommandEntry& program);

}  // namespace detent::cli
