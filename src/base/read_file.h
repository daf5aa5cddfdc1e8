// Reads a whole file as text. Used for files that the settings name: keys, tokens, sinks.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace detent {

/// Errors: unavailable if the file cannot be read (this includes a folder); too_large if it has
/// more than `most` bytes. The message names the file and the reason.
Result<std::string> read_file(const std::filesystem::path& file, std::size_t most);

}  // namespace detent
