// The sources of the settings of `detent serve`. A flag takes precedence, then the environment,
// then the file of settings, then the default.
//
// The functions work on all options of the command, so a new option needs no change here. Its name
// in the file is the name of the flag; its variable is DETENT_ and this name in capitals. Before
// the default comes OTEL_EXPORTER_OTLP_ENDPOINT, which many programs read, for --otlp-endpoint.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/settings/settings.h"

namespace detent::cli {

/// "--log-level" → "DETENT_LOG_LEVEL".
std::string variable_of(const std::string& flag);

/// Adds --config and --print-config.
void add_config_options(CLI::App& serve, std::string& file, bool& print);

/// Call this before parsing. CLI11 then does not read the variables; fill_settings() does.
void hide_variables(CLI::App& serve);
/// Call this before the help is printed, so that the help names the variables.
void show_variables(CLI::App& serve);

/// Call this after parsing. Each option that is not on the command line gets its value from the
/// environment or from `file`. If `file` is empty, DETENT_CONFIG can name the file. Returns all
/// settings. Errors: `invalid_argument`; the message begins with the variable, or with the file and
/// line.
Result<std::vector<Setting>> fill_settings(CLI::App& serve, const std::string& file);

/// Variables DETENT_… that are probably mistyped: neither `serve` nor a client reads them, but
/// their names are similar to a known variable. In alphabetical order. Leaves out the variables
/// that Kubernetes sets for a service named detent.
std::vector<UnknownVariable> unknown_variables(CLI::App& serve);

}  // namespace detent::cli
