// What `detent serve` was asked for; docs/reference/cli.md describes the flags.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/log/log.h"

namespace detent::cli {

/// Every value has been read and is in its range; whether the address is allowed and the folder can
/// be used is the server's to find out. Durability is no option yet: an acknowledged task is on
/// disk.
struct ServeOptions {
  std::filesystem::path data = "data";
  std::string http_host = "127.0.0.1";  // an IP address, without brackets
  std::uint16_t http_port = 7070;       // 0: the system chooses
  std::chrono::milliseconds window = std::chrono::minutes{10};
  std::size_t max_loaded = 1'000'000;
  LogFormat log_format = LogFormat::text;
  LogLevel log_level = LogLevel::info;

  friend bool operator==(const ServeOptions&, const ServeOptions&) = default;
};

}  // namespace detent::cli
