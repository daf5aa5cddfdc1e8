// The options of `detent check`; docs/reference/cli.md describes them.
#pragma once

#include <filesystem>
#include <string>

#include "cli/output/output_format.h"

namespace detent::cli {

struct CheckOptions {
  std::filesystem::path data = "data";
  std::string store;  // address of a PostgreSQL database; empty: check `data`
  OutputFormat format = OutputFormat::people;
};

}  // namespace detent::cli
