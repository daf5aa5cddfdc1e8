// Renders the completion scripts of shells. They complete commands, options, values from a fixed
// set of words, names of files, and names of queues.
//
// The scripts come from the table of commands. Only for names of queues they call the server, with
// `detent queues`, which uses DETENT_URL and DETENT_TOKEN. This call has two seconds at most. A
// queue can have a name such as $(reboot), so the scripts never let the shell expand a name.
#pragma once

#include <cstdint>
#include <string>

#include "cli/help/command_table.h"

namespace detent::cli {

enum class Shell : std::uint8_t { bash, zsh, fish };

/// Returns the script. The shell reads it once, from its folder of completions or with
/// `source <(detent completion bash)`.
std::string render_completion(const CommandEntry& program, Shell shell);

}  // namespace detent::cli
