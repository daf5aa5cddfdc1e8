// The settings of `detent serve` as text, each with the source of its value. --print-config prints
// them, and a reload compares them with the earlier settings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options/serve_options.h"

namespace detent::cli {

/// The type of a value in a file of settings.
enum class SettingKind : std::uint8_t { text, number, yes_or_no };

struct Setting {
  std::string name;   // as in a file of settings: "log-level"
  std::string value;  // as on the command line; empty: not set
  std::string from;   // "default", "detent.toml:3", "environment DETENT_LOG_LEVEL" or "flag"
  SettingKind kind = SettingKind::text;
};

/// An environment variable that has no effect. Its name is probably mistyped.
struct UnknownVariable {
  std::string name;     // "DETENT_MEMROY"
  std::string nearest;  // "DETENT_MEMORY"

  friend bool operator==(const UnknownVariable&, const UnknownVariable&) = default;
};

/// A call of `detent serve`: the checked values, and the same settings as text.
struct ServeCall {
  ServeOptions options;
  std::vector<Setting> settings;  // in the order of --help
  std::vector<UnknownVariable> unknown_variables = {};
};

/// Reads the command line, the environment and the file again, as at the start.
using ReadAgain = std::function<Result<ServeCall>()>;

/// The settings as a file that `--config` can read, one line per setting. A comment stands for a
/// setting that is not set, has a password in its address, or is not UTF-8.
std::string to_toml(const std::vector<Setting>& settings);

}  // namespace detent::cli
