// Protects a server from requests that a foreign web page makes a browser send.
//
// Such a page can send requests, but it cannot choose two of their headers.
//
// - `Origin` names the site of the page. The server accepts a change only from its own pages, and
//   from the site that the operator allows.
// - `Host` is the server's name in the address bar of the browser. An attacker can let a domain
//   name resolve to 127.0.0.1, and the page then has the same origin as the server (DNS rebinding).
//   If the server asks for no token, it therefore answers only for addresses, for names without a
//   dot (localhost, or a host of the own network), and for names that the operator gave.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "net/message/http_message.h"

namespace detent::server {

/// Returns true if the request changes no data, or does not come from a browser, or comes from a
/// page of this server or of `cors_origin` ("*" allows any page).
bool is_from_own_page(const net::HttpRequest& request, std::string_view cors_origin);

/// Returns true if the client reached the server by an address, by a name without a dot, or by one
/// of `names`. The `names` must be in lower case.
bool is_own_name(const net::HttpRequest& request, std::span<const std::string> names);

}  // namespace detent::server
