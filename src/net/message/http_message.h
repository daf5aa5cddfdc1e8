// The two messages of HTTP as the rest of the program sees them: no framing, no connection.
//
// http_server.h receives requests and sends responses; http_client.h sends requests and receives
// responses. http_parser.h reads messages from bytes, and http_writer.h writes them to bytes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace detent::net {

/// Changes ASCII letters only.
std::string to_lower(std::string_view text);
bool equals_ignoring_case(std::string_view text, std::string_view lower);

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;     // as sent: "GET", "POST", …
  std::string target;     // path and query as sent, not decoded; starts with '/', or is "*"
  HttpHeaders headers;    // in order; names in lower case
  std::string body;       // after the chunks were joined
  std::string peer = {};  // the client's IP address without port; empty in a client

  /// Returns the first header of this lower-case name, or "". Linear in the number of headers.
  std::string_view header(std::string_view name) const noexcept;
};

struct HttpResponse {
  int status = 200;                               // 200 … 599
  std::string content_type = "application/json";  // "": no Content-Type header
  std::string body;
  HttpHeaders headers = {};  // without Content-Type, Content-Length and Connection

  /// Returns the first header of this lower-case name, or "". The header names must be in lower
  /// case, as in the answers of HttpClient. Linear in the number of headers.
  std::string_view header(std::string_view name) const noexcept;
};

}  // namespace detent::net
