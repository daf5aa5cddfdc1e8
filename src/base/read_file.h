// Reads a whole file as text, for files that an operator names in settings: keys, tokens, sinks.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace detent {

/// Errors: unavailable when it cannot be read, as a folder cannot; too_large when it has more than
/// `most` bytes. The message names the file and why.
Result<std::string> read_file(const std::filesystem::path& file, std::size_t most);

}  // namespace detent
