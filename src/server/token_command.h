// `detent token new`: a fresh access token, and what the server's file of tokens says of it.
#pragma once

#include <iosfwd>

#include "cli/token_options.h"

namespace detent::server {

/// Shows the token on `out`, the only time it is to be seen, and its lines for the file. Returns
/// the program's exit code: 2, and what is wrong on `err`, for a scope or a name that there is not.
int make_token(const cli::TokenOptions& options, std::ostream& out, std::ostream& err);

}  // namespace detent::server
