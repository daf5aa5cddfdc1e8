// Which addresses the server may listen on.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "cli/options/serve_options.h"

namespace detent::server {

/// Refuses addresses that other machines can reach (any address except 127.0.0.0/8 and ::1), unless
/// access is protected or a flag permits it. This concerns HTTP without tokens, and beanstalk,
/// which has no tokens. Errors: `invalid_argument`, also for text that is not an IP address.
Result<void> check_exposure(const cli::ServeOptions& options);

/// Logs a warning about data that other machines can read, and about actions that they can do.
/// Requires: check_exposure() has accepted the options.
void warn_of_exposure(const cli::ServeOptions& options);

bool is_loopback(const std::string& host);

/// The most connections of all addresses together.
inline constexpr std::size_t kMostConnections = 10'000;
/// The most connections of one address, for a server that listens on `host`. On loopback all
/// connections come from one address, for example a proxy. `of_all` is the limit of all addresses
/// together.
std::size_t max_connections_of_address(const std::string& host,
                                       std::size_t of_all = kMostConnections);

}  // namespace detent::server
