// A file of settings: one level of `name = value` in TOML. Which names there are and what their
// values may be is not known here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/settings.h"

namespace detent::cli {

struct FileSetting {
  std::string name;
  std::string value;  // the text in quotes, the number in decimal, "true" or "false"
  SettingKind kind = SettingKind::text;
  std::string place;  // "detent.toml:3"
};

/// Larger files are refused.
inline constexpr std::size_t kLargestSettingsFile = 1 << 20;

/// The settings in `text`, in the order of their lines. Errors: `invalid_argument`, beginning with
/// `file` and the line: no TOML, a name twice, a table, a value of another type.
Result<std::vector<FileSetting>> parse_settings(std::string_view text, const std::string& file);

/// The same from a file. A '-' before the path says that it may be missing: then there are none.
/// Errors: also a file that cannot be read, or is too large.
Result<std::vector<FileSetting>> read_settings_file(const std::string& path);

}  // namespace detent::cli
