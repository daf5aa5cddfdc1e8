// Reads a file of settings: TOML with one level of `name = value`. The caller checks the names and
// the values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/settings/settings.h"

namespace detent::cli {

struct FileSetting {
  std::string name;
  std::string value;  // the string without its quotes, a decimal number, "true" or "false"
  SettingKind kind = SettingKind::text;
  std::string place;  // "detent.toml:3"
};

/// The largest accepted file, in bytes.
inline constexpr std::size_t kLargestSettingsFile = 1 << 20;

/// The message about a text without quotes: "put text in quotes: memory = \"1G\"".
std::string put_in_quotes(const std::string& name, const std::string& value);

/// Returns the settings in `text`, in the order of their lines. Errors: `invalid_argument` for text
/// that is not TOML, a repeated name, a table, or a value of another type. The message begins with
/// `file` and the line.
Result<std::vector<FileSetting>> parse_settings(std::string_view text, const std::string& file);

/// Reads the settings of a file. If a '-' stands before the path, the file may be missing; then
/// there are no settings. Errors: as for parse_settings(), and a file that cannot be read or is too
/// large.
Result<std::vector<FileSetting>> read_settings_file(const std::string& path);

}  // namespace detent::cli
