#include "server/access/token_command.h"

#include <algorithm>
#include <ostream>
#include <string>

#include "base/result.h"
#include "server/access/access_rules.h"
#include "server/access/access_token.h"

namespace detent::server {
namespace {

constexpr int kUsage = 2;

/// A name that is the same in a file, where it stands in quotes, and in the log.
bool is_plain(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return c > ' ' && c <= '~' && c != '"' && c != '\\';
  });
}

}  // namespace

int make_token(const cli::TokenOptions& options, std::ostream& out, std::ostream& err) {
  if (!is_plain(options.name)) {
    err << "detent token: the name must be printable ASCII without spaces, quotes or backslashes\n";
    return kUsage;
  }
  std::string scopes;
  for (const std::string& scope : options.scopes) {
    if (const Result<Grant> grant = parse_grant(scope); !grant) {
      err << "detent token: " << grant.error().message << "\n";
      return kUsage;
    }
    scopes += (scopes.empty() ? "\"" : ", \"") + scope + "\"";
  }
  const std::string token = make_token();
  const std::string lines = "[[token]]\nname = \"" + options.name + "\"\nsha256 = \"" +
                            to_hex(hash_token(token)) + "\"\nscopes = [" + scopes + "]\n";
  if (const auto rules = AccessRules::parse(lines, "tokens"); !rules) {
    err << "detent token: " << rules.error().message << "\n";
    return kUsage;
  }
  out << "# The token. It is shown only once:\n#   " << token
      << "\n# These lines are for the file that `detent serve --auth FILE` reads:\n"
      << lines;
  return 0;
}

}  // namespace detent::server
