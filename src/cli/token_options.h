// What `detent token new` was asked for; docs/reference/cli.md describes it. What a scope may be is
// the server's to find out.
#pragma once

#include <string>
#include <vector>

namespace detent::cli {

struct TokenOptions {
  std::string name;
  std::vector<std::string> scopes;  // at least one
};

}  // namespace detent::cli
