// `detent check`: checks the data of a stopped server.
#pragma once

#include "cli/options/check_options.h"

namespace detent::server {

/// Reads every record, shows its progress on standard error, and prints the findings on standard
/// output. Returns the program's exit code.
int check_data(const cli::CheckOptions& options);

}  // namespace detent::server
