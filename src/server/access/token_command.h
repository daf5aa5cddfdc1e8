// `detent token new`: makes an access token, and the lines for the server's token file.
#pragma once

#include <iosfwd>

#include "cli/options/token_options.h"

namespace detent::server {

/// Shows the token on `out`, with its lines for the token file. The token is shown only this once.
/// Returns the program's exit code. An unknown scope or an invalid name gives 2, and a message on
/// `err`.
int make_token(const cli::TokenOptions& options, std::ostream& out, std::ostream& err);

}  // namespace detent::server
