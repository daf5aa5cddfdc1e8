#include "server/cluster/peer_link.h"

#include <utility>

#include "detent/check.h"

namespace detent::server {

PeerLink::PeerLink(PeerLinkOptions options, net::HttpCaller& caller)
    : options_(std::move(options)), secret_hash_(hash_token(options_.secret)), caller_(caller) {
  DETENT_CHECK(!options_.secret.empty());
}

bool PeerLink::is_of_cluster(const net::HttpRequest& request) const {
  const std::string_view shown = request.header(kSecretHeader);
  return !shown.empty() && is_equal(hash_token(shown), secret_hash_);
}

Result<net::HttpUrl> PeerLink::url_of(const std::string& address) const {
  return net::parse_http_url(options_.scheme + "://" + address + "/");
}

PeerLink::CallNumber PeerLink::call(net::HttpUrl node, net::HttpRequest request, Done done,
                                    WhenSlow slow) const {
  node.target = request.target;
  request.headers.emplace_back(kSecretHeader, options_.secret);
  return caller_.call(std::move(node), std::move(request), std::move(done), std::move(slow));
}

Result<PeerLink::CallNumber> PeerLink::call(const std::string& address, net::HttpRequest request,
                                            Done done) const {
  ASSIGN_OR_RETURN(net::HttpUrl node, url_of(address));
  return call(std::move(node), std::move(request), std::move(done));
}

}  // namespace detent::server
