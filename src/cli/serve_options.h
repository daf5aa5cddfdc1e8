// What `detent serve` was asked for; docs/reference/cli.md describes the flags.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/log/log.h"

namespace detent::cli {

/// A node of a cluster.
struct ClusterOptions {
  std::string node;     // its name; empty: this server is no cluster's
  std::string address;  // for the other nodes, as "10.0.0.7:7070"; empty: that of HTTP
  std::chrono::milliseconds lease = std::chrono::seconds{10};
  std::string ca_file;                  // PEM; empty: the system's authorities
  std::optional<std::uint32_t> shards;  // 1 … 2^TaskId::kShardBits; none: what there is

  friend bool operator==(const ClusterOptions&, const ClusterOptions&) = default;
};

/// Every value has been read and is in its range; whether the address is allowed and the folder can
/// be used is the server's to find out.
struct ServeOptions {
  std::filesystem::path data = "data";
  std::string store;                         // address of a PostgreSQL database; empty: `data`
  std::string http_host = "127.0.0.1";       // an IP address, without brackets
  std::uint16_t http_port = 7070;            // 0: the system chooses
  std::string beanstalk_host = "127.0.0.1";  // empty: no beanstalk
  std::uint16_t beanstalk_port = 11300;
  bool beanstalk_public = false;  // other than loopback is allowed for it, which has no tokens
  std::string auth;               // the file of access tokens; empty: none is needed
  std::string tls_cert;           // files in PEM; empty: plain HTTP
  std::string tls_key;            // empty when tls_cert is
  std::vector<std::string> host_names;  // by which a server without tokens may be reached
  std::chrono::milliseconds window = std::chrono::minutes{10};
  std::size_t memory_bytes = std::size_t{512} << 20;
  /// How long what was acknowledged may wait for its sync; 0: synced before it is acknowledged.
  std::chrono::milliseconds sync_interval{0};
  /// Where far tasks are kept, as an address; empty: here. The server reads it.
  std::string cors_origin;  // whose pages may use the API in a browser; "*": all; "": none
  std::string external;
  std::chrono::milliseconds external_after = std::chrono::hours{24};
  std::string webhook_allow;           // blocks of addresses; the server reads it
  std::filesystem::path webhook_keys;  // empty: a key of the server's own
  std::filesystem::path sinks;         // a file of brokers and their names; empty: none
  ClusterOptions cluster;
  std::string alert_webhook;  // a URL that alerts are POSTed to; empty: they are only logged
  // Above which figures there is an alert; none: however high.
  std::optional<std::uint64_t> alert_pending;
  std::optional<std::uint64_t> alert_dead;
  std::optional<std::chrono::milliseconds> alert_lateness;
  LogFormat log_format = LogFormat::text;
  LogLevel log_level = LogLevel::info;

  friend bool operator==(const ServeOptions&, const ServeOptions&) = default;
};

}  // namespace detent::cli
