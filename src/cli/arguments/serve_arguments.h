// Describes `detent serve` to CLI11. cluster_arguments.h has the options of a node, and
// setting_sources.h the other sources of settings.
#pragma once

#include <filesystem>
#include <string>

#include "cli/arguments/argument_options.h"

namespace detent::cli {

/// Adds the command to `app`. `config` gets the value of --config, `print_config` that of
/// --print-config. All arguments must outlive `app`.
void add_serve(CLI::App& app, ServeOptions& options, std::string& config, bool& print_config);

// Options that `detent check` has, too: --data and --store.
void add_data(CLI::App& app, std::filesystem::path& data, const char* what);
void add_store(CLI::App& app, std::string& store);

}  // namespace detent::cli
