// What `detent check` was asked for; docs/reference/cli.md describes it.
#pragma once

#include <filesystem>

namespace detent::cli {

struct CheckOptions {
  std::filesystem::path data = "data";
};

}  // namespace detent::cli
