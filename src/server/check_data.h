// `detent check`: whether the data of a server that does not run is sound.
#pragma once

#include "cli/check_options.h"

namespace detent::server {

/// Reads every record, shows how far it is on standard error and what it found on standard output.
/// Returns the program's exit code.
int check_data(const cli::CheckOptions& options);

}  // namespace detent::server
