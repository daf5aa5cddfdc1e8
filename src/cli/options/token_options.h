// The options of `detent token new`; docs/reference/cli.md describes them. The server code checks
// the name and the scopes.
#pragma once

#include <string>
#include <vector>

namespace detent::cli {

struct TokenOptions {
  std::string name;
  std::vector<std::string> scopes;  // at least one
};

}  // namespace detent::cli
