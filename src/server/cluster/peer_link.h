// The link between the nodes of a cluster: the scheme of their URLs, and the secret by which a node
// recognizes a request of another node.
//
// Every request between nodes uses this link, so no other part of the program knows the secret.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http_client/http_caller.h"
#include "net/message/http_message.h"
#include "net/message/http_url.h"
#include "server/access/access_token.h"

namespace detent::server {

/// Removed from every client's request, by drop_headers() of kOfNodes.
inline constexpr std::string_view kSecretHeader = "detent-cluster";

struct PeerLinkOptions {
  std::string scheme = "http";  // the scheme of calls between nodes
  std::string secret;           // of the cluster; not empty
};

/// Thread-safe.
class PeerLink {
 public:
  using CallNumber = net::HttpCaller::CallNumber;
  using Done = net::HttpCaller::Done;
  using WhenSlow = net::HttpCaller::WhenSlow;

  /// `caller` must outlive it.
  PeerLink(PeerLinkOptions options, net::HttpCaller& caller);

  /// Returns true if the request carries this cluster's secret. Compares in constant time.
  bool is_of_cluster(const net::HttpRequest& request) const;

  /// The URL of a node, from its address as a Member has it. Errors: the address is invalid.
  Result<net::HttpUrl> url_of(const std::string& address) const;
  /// Sends `request` to the node, with its own target and the secret. `done`, `slow` and the
  /// returned number are as in HttpCaller::call().
  CallNumber call(net::HttpUrl node, net::HttpRequest request, Done done, WhenSlow slow = {}) const;
  /// As call() above, with an address. Errors: as url_of(); then `done` never runs.
  Result<CallNumber> call(const std::string& address, net::HttpRequest request, Done done) const;
  /// As HttpCaller::abandon().
  void abandon(CallNumber number) const { caller_.abandon(number); }

 private:
  const PeerLinkOptions options_;
  const TokenHash secret_hash_;
  net::HttpCaller& caller_;
};

}  // namespace detent::server
