// Builds the table of commands (command_table.h) from the description in CLI11.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/help/command_table.h"

namespace detent::cli {

CommandEntry read_commands(const CLI::App& app);

}  // namespace detent::cli
