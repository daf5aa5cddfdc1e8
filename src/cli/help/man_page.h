// Renders the manual page, detent(1), from the table of commands. docs/reference/detent.1 is a
// copy, made with `detent man >docs/reference/detent.1`. A test compares them.
#pragma once

#include <string>

#include "cli/help/command_table.h"

namespace detent::cli {

/// Returns the page in roff with the macros of man(7).
std::string render_man_page(const CommandEntry& program);

}  // namespace detent::cli
