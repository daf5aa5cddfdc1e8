// Reads a whole file as text. Used for files that the settings name: keys, tokens, sinks. Also
// explains why a file or folder cannot be used.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace detent {

/// Errors: unavailable if the file cannot be read (this includes a folder); too_large if it has
/// more than `most` bytes. The message names the file and the reason.
Result<std::string> read_file(const std::filesystem::path& file, std::size_t most);

/// Returns who this process is and whose the file is: "uid 7070; its owner is uid 0, its mode
/// 0600". Returns only the first part if the file cannot be looked at.
std::string show_rights(const std::filesystem::path& file);

/// The text of an error of the system, about this file. If the error is about rights, show_rights()
/// follows in parentheses.
std::string reason_for(int error, const std::filesystem::path& file);

}  // namespace detent
