// The command line of `detent serve`, read by CLI11. That of a cluster's nodes is in
// cluster_arguments.h, where settings come from besides in setting_sources.h.
#pragma once

#include <filesystem>
#include <string>

#include "cli/argument_options.h"

namespace detent::cli {

/// What they are given must outlive `app`. `config` gets the file of settings, `print_config`
/// whether they are only to be shown.
void add_serve(CLI::App& app, ServeOptions& options, std::string& config, bool& print_config);

// Options that other commands have, too: --data and --store.
void add_data(CLI::App& app, std::filesystem::path& data, const char* what);
void add_store(CLI::App& app, std::string& store);

}  // namespace detent::cli
