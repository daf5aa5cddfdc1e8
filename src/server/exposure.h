// Which addresses the server may listen on.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "cli/serve_options.h"

namespace detent::server {

/// Refuses to be reached from other machines (any address but 127.0.0.0/8 and ::1) by whoever
/// likes: HTTP without tokens, and beanstalk, which has none, without a flag that says so. Errors:
/// `invalid_argument`, also for what is no IP address.
Result<void> check_exposure(const cli::ServeOptions& options);

/// Warns in the log of what others could read or do. Requires: check_exposure() has accepted it.
void warn_of_exposure(const cli::ServeOptions& options);

bool is_loopback(const std::string& host);

/// Of all addresses together.
inline constexpr std::size_t kMostConnections = 10'000;
/// Most connections of one address for a server that listens on `host`: on loopback all come from
/// one, a proxy's perhaps. `of_all` are the connections of all addresses together.
std::size_t max_connections_of_address(const std::string& host,
                                       std::size_t of_all = kMostConnections);

}  // namespace detent::server
