// Renders the text of `--help` from the table of commands.
#pragma once

#include <string>

#include "cli/help/command_table.h"

namespace detent::cli {

/// The heading of the options that all commands to a server share. They come last.
inline constexpr const char* kServerOptions = "Options of all commands to a server";

/// The arguments of a command as in its usage: "QUEUE [PAYLOAD]", "LEASE...".
std::string arguments_of(const CommandEntry& command);

/// Returns the help of the program or of a command. Lines have at most 80 characters, except
/// examples. `name` is the whole name of the command, such as "detent cron next".
std::string render_help(const CommandEntry& command, const std::string& name);

}  // namespace detent::cli
