// The settings of `detent serve`; docs/reference/cli.md describes the flags.
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

/// The settings of a node of a cluster.
struct ClusterOptions {
  std::string node;     // its name; empty: this server is not in a cluster
  std::string address;  // for the other nodes, such as "10.0.0.7:7070"; empty: that of HTTP
  std::chrono::milliseconds lease = std::chrono::seconds{10};
  std::string ca_file;                  // PEM; empty: the authorities of the system
  std::optional<std::uint32_t> shards;  // 1 … 2^TaskId::kShardBits; none: the present number

  friend bool operator==(const ClusterOptions&, const ClusterOptions&) = default;
};

/// Each value has been parsed and is in its range. The server checks whether the addresses are
/// allowed and the folder can be used.
struct ServeOptions {
  std::filesystem::path data = "data";
  std::string store;                         // address of a PostgreSQL database; empty: `data`
  std::string http_host = "127.0.0.1";       // an IP address, without brackets
  std::uint16_t http_port = 7070;            // 0: the system chooses
  std::string beanstalk_host = "127.0.0.1";  // empty: no beanstalk
  std::uint16_t beanstalk_port = 11300;
  bool beanstalk_public = false;  // beanstalk, which has no tokens, may listen beyond loopback
  std::string auth;               // file of access tokens; empty: clients need no token
  std::string tls_cert;           // PEM file; empty: plain HTTP
  std::string tls_key;            // PEM file; empty if tls_cert is empty
  std::vector<std::string> host_names;  // names that clients may use for a server without tokens
  std::chrono::milliseconds window = std::chrono::minutes{10};
  std::size_t memory_bytes = std::size_t{512} << 20;
  /// With less free space on the disk of the data folder, new tasks are refused; 0: never.
  std::uint64_t min_free_disk_bytes = std::uint64_t{256} << 20;
  /// How long an acknowledged write may wait for its sync; 0: the sync comes before the answer.
  std::chrono::milliseconds sync_interval{0};
  std::string cors_origin;  // site whose pages may use the API in a browser; "*": all; "": none
  /// Address of the external scheduler that keeps far tasks, parsed by the server; empty: none.
  std::string external;
  std::chrono::milliseconds external_after = std::chrono::hours{24};
  std::string webhook_allow;           // blocks of addresses, parsed by the server
  std::filesystem::path webhook_keys;  // empty: the server creates a key
  std::filesystem::path sinks;         // file of brokers and their names; empty: none
  ClusterOptions cluster;
  std::string alert_webhook;  // URL that gets the alerts by POST; empty: they are only logged
  // A figure above its threshold causes an alert; none: no alert for this figure.
  std::optional<std::uint64_t> alert_pending;
  std::optional<std::uint64_t> alert_dead;
  std::optional<std::chrono::milliseconds> alert_lateness;
  std::string otlp_endpoint;  // URL of an OpenTelemetry collector; empty: no traces
  double otlp_ratio = 1;      // 0 … 1; the share of the tasks without a trace that get one
  LogFormat log_format = LogFormat::text;
  LogLevel log_level = LogLevel::info;

  friend bool operator==(const ServeOptions&, const ServeOptions&) = default;
};

}  // namespace detent::cli
