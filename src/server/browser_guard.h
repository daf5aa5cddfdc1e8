// What a browser may be made to do by a page that somebody else wrote.
//
// Such a page can send requests, but not choose two of their headers. `Origin` tells whose page it
// is: what changes something is refused when that is neither this server nor the one site that may
// use it. `Host` tells by what name the server was reached: a page can have its own name resolve to
// 127.0.0.1 and then is of the same origin (DNS rebinding). Such a name is in a domain, so where no
// token is asked for only addresses, names without a dot (localhost, or one of the own network) and
// names that the operator gave are answered.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "net/http_message.h"

namespace detent::server {

/// Whether the request changes nothing, or comes from no browser, or from a page of this server or
/// of `cors_origin` ("*": from any).
bool is_from_own_page(const net::HttpRequest& request, std::string_view cors_origin);

/// Whether the server was reached by an address, by a name without a dot, or by one of `names`,
/// which are in lower case.
bool is_own_name(const net::HttpRequest& request, std::span<const std::string> names);

}  // namespace detent::server
