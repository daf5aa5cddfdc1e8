// What the server says when it is ready: where it is, and a first request to try.
#pragma once

#include <cstdint>
#include <string>

#include "cli/serve_options.h"

namespace detent::server {

/// "127.0.0.1:7070", "[::1]:7070".
std::string address_of(const std::string& host, std::uint16_t port);

/// On standard output for people, and in the log. `beanstalk` is an address, empty when it is off.
void announce(const cli::ServeOptions& options, std::uint16_t port, const std::string& beanstalk);

}  // namespace detent::server
