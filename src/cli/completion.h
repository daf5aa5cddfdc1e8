// What shells complete after `detent`: commands, options, values where only certain words are
// allowed, names of files. Rendered from the table of commands, so nothing is asked while one types
// but for names of queues, which `detent queues` tells, by DETENT_URL and DETENT_TOKEN, within two
// seconds or not at all. A queue may be called $(reboot): names are taken as words, never expanded.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command_table.h"

namespace detent::cli {

enum class Shell : std::uint8_t { bash, zsh, fish };

/// A script that the shell reads once: from its folder of completions, or by
/// `source <(detent completion bash)`.
std::string render_completion(const CommandEntry& program, Shell shell);

}  // namespace detent::cli
