// Reads a command_table.h off what CLI11 knows.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command_table.h"

namespace detent::cli {

CommandEntry read_commands(const CLI::App& app);

}  // namespace detent::cli
