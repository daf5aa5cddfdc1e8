// The text that the server prints when it is ready: its address, and a first request to try.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cli/options/serve_options.h"

namespace detent::server {

/// "127.0.0.1:7070", "[::1]:7070".
std::string address_of(const std::string& host, std::uint16_t port);

/// Prints the text on standard output for people, and logs it. `beanstalk` is an address, or empty
/// if that server is off.
void announce(const cli::ServeOptions& options, std::uint16_t port, const std::string& beanstalk);

/// Logs that the data folder was restored from a backup, and from which, at the first start after
/// the restore. Does nothing without a folder.
void tell_restored(const std::filesystem::path& data);

}  // namespace detent::server
