// Where `detent serve` finds what its command line leaves out: flag, else environment, else file,
// else default. Works on whatever options the command has, so a new option needs nothing here: its
// variable is DETENT_ and its name in capitals, its name in the file is the flag's.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/settings.h"

namespace detent::cli {

/// "--log-level" → "DETENT_LOG_LEVEL".
std::string variable_of(const std::string& flag);

/// Adds --config and --print-config.
void add_config_options(CLI::App& serve, std::string& file, bool& print);

/// To be called before parsing: only fill_settings() looks at the environment. And before help is
/// printed, which names the variables.
void hide_variables(CLI::App& serve);
void show_variables(CLI::App& serve);

/// To be called after parsing: gives each option that was no flag the value that environment or
/// `file` has for it (empty: DETENT_CONFIG names the file, if any), as if it had been a flag.
/// Returns: all settings there are. Errors: `invalid_argument`, which begins with the variable or
/// file and line to mend.
Result<std::vector<Setting>> fill_settings(CLI::App& serve, const std::string& file);

/// Variables DETENT_… that neither `serve` nor a client reads and that are like one that they read,
/// in alphabetical order. Not those that Kubernetes makes for a service of the name detent.
std::vector<UnknownVariable> unknown_variables(CLI::App& serve);

}  // namespace detent::cli
