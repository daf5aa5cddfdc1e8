#include "cli/arguments/cluster_arguments.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "task/task.h"

namespace detent::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxNodeName = 64;
constexpr milliseconds kShortestLease{1'000};
constexpr milliseconds kLongestLease{600'000};

Result<std::string> parse_node_name(const std::string& text) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  const bool is_name = !text.empty() && text.size() <= kMaxNodeName &&
                       text.find_first_not_of(kAllowed) == std::string::npos;
  if (is_name) return text;
  return Error{ErrorCode::invalid_argument,
               "must be 1 to 64 letters, digits, dots, hyphens and underscores", ""};
}

/// The host can be a name, because other nodes resolve it. parse_address() is for the address on
/// which a server listens.
Result<std::string> parse_node_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string_view port = std::string_view(text).substr(std::min(colon + 1, text.size()));
  std::uint16_t number = 0;
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  const bool is_port = error == std::errc{} && stop == port.data() + port.size() && number != 0;
  if (colon != std::string::npos && colon > 0 && is_port) return text;
  return Error{ErrorCode::invalid_argument, "must be HOST:PORT, such as 10.0.0.7:7070", ""};
}

Result<milliseconds> parse_lease(const std::string& text) {
  ASSIGN_OR_RETURN(const milliseconds lease, parse_any_duration(text));
  if (lease >= kShortestLease && lease <= kLongestLease) return lease;
  return Error{ErrorCode::invalid_argument, "must be 1s to 10m", ""};
}

}  // namespace

void add_cluster(CLI::App& serve, ClusterOptions& options) {
  constexpr std::uint32_t kMostShards = 1U << static_cast<unsigned>(TaskId::kShardBits);
  add_parsed<std::string>(serve, "--node", parse_node_name,
                          [&options](const std::string& name) { options.node = name; })
      ->description("Name of this server in a cluster over the database of --store")
      ->type_name("NAME");
  add_parsed<std::string>(serve, "--node-address", parse_node_address,
                          [&options](const std::string& address) { options.address = address; })
      ->description("Address of this node for the other nodes; default: the address of --http")
      ->type_name("HOST:PORT");
  add_parsed<milliseconds>(serve, "--node-lease", parse_lease,
                           [&options](milliseconds lease) { options.lease = lease; })
      ->description(
          "How long a silent node keeps its shards before other nodes take them, 1s to 10m")
      ->type_name("DURATION")
      ->default_str("10s");
  serve
      .add_option(
          "--node-ca", options.ca_file,
          "PEM file with the certificates to trust for connections to other nodes; default: "
          "the certificates of the system")
      ->type_name("FILE");
  add_number(serve, "--shards", options.shards, {1, kMostShards})
      ->description(
          "Number of shards of the cluster; the first node sets it, and its default is 16");
}

}  // namespace detent::cli
