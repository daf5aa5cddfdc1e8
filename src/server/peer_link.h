// How a node of a cluster reaches another, and how it knows a request of one: the scheme of their
// URLs, and the secret that the nodes of a cluster show each other.
//
// Every request from node to node goes this way, so nothing else knows the secret.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http_caller.h"
#include "net/http_message.h"
#include "net/http_url.h"
#include "server/access_token.h"

namespace detent::server {

/// No client's request may have it: drop_headers() of kOfNodes.
inline constexpr std::string_view kSecretHeader = "detent-cluster";

struct PeerLinkOptions {
  std::string scheme = "http";  // by which nodes reach each other
  std::string secret;           // of the cluster; not empty
};

/// Thread-safe.
class PeerLink {
 public:
  using CallNumber = net::HttpCaller::CallNumber;
  using Done = net::HttpCaller::Done;
  using Late = net::HttpCaller::Late;

  /// `caller` must outlive it.
  PeerLink(PeerLinkOptions options, net::HttpCaller& caller);

  /// Whether the request shows this cluster's secret. Takes equally long whatever differs.
  bool is_of_cluster(const net::HttpRequest& request) const;

  /// Of a node, as members name their addresses. Errors: that is no address.
  Result<net::HttpUrl> url_of(const std::string& address) const;
  /// Sends the node what `request` says, target included, with the secret; `done`, `late` and the
  /// number are as HttpCaller::call()'s.
  CallNumber call(net::HttpUrl node, net::HttpRequest request, Done done, Late late = {}) const;
  /// Likewise. Errors: as url_of(); then `done` never runs.
  Result<CallNumber> call(const std::string& address, net::HttpRequest request, Done done) const;
  /// As HttpCaller::abandon().
  void abandon(CallNumber number) const { caller_.abandon(number); }

 private:
  const PeerLinkOptions options_;
  const TokenHash secret_hash_;
  net::HttpCaller& caller_;
};

}  // namespace detent::server
