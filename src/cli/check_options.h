// What `detent check` was asked for; docs/reference/cli.md describes it.
#pragma once

#include <filesystem>

#include "cli/output_format.h"

namespace detent::cli {

struct CheckOptions {
  std::filesystem::path data = "data";
  OutputFormat format = OutputFormat::people;
};

}  // namespace detent::cli
