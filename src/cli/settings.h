// The settings of `detent serve` as text, each with where its value comes from: what --print-config
// prints, and what a reload compares.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/serve_options.h"

namespace detent::cli {

/// How a value is written in a file of settings.
enum class SettingKind : std::uint8_t { text, number, yes_or_no };

struct Setting {
  std::string name;   // as in a file: "log-level"
  std::string value;  // as on the command line; empty: not set
  std::string from;   // "default", "detent.toml:3", "environment DETENT_LOG_LEVEL" or "flag"
  SettingKind kind = SettingKind::text;
};

/// A variable of the environment that was likely meant for a setting, and is of none.
struct UnknownVariable {
  std::string name;     // "DETENT_MEMROY"
  std::string nearest;  // "DETENT_MEMORY"

  friend bool operator==(const UnknownVariable&, const UnknownVariable&) = default;
};

/// What `detent serve` was asked for: all values read and checked, and the same as text.
struct ServeCall {
  ServeOptions options;
  std::vector<Setting> settings;  // in the order of --help
  std::vector<UnknownVariable> unknown_variables = {};
};

/// Reads command line, environment and file once more, as at the start.
using ReadAgain = std::function<Result<ServeCall>()>;

/// The settings as a file that `--config` takes, a line each. What is not set is a comment, and so
/// is what may not be shown or written: an address with a password, bytes that are not UTF-8.
std::string to_toml(const std::vector<Setting>& settings);

}  // namespace detent::cli
