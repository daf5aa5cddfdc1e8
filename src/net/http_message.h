// The two messages of HTTP as the rest of the program sees them: no framing, no connection.
//
// http_server.h gives requests and takes responses, http_client.h the other way round. How they
// look on the wire is in http_parser.h (in) and http_writer.h (out).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace detent::net {

/// ASCII letters; all else stays as it is.
std::string to_lower(std::string_view text);
bool equals_ignoring_case(std::string_view text, std::string_view lower);

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;     // as sent: "GET", "POST", …
  std::string target;     // path and query as sent, not decoded; starts with '/', or is "*"
  HttpHeaders headers;    // in order; names in lower case
  std::string body;       // framing (chunks) removed
  std::string peer = {};  // of a request to a server: the client's IP address, without port

  /// The first header of this lower-case name, or "". Linear in the number of headers.
  std::string_view header(std::string_view name) const noexcept;
};

struct HttpResponse {
  int status = 200;                               // 200 … 599
  std::string content_type = "application/json";  // "": no such header
  std::string body;
  HttpHeaders headers = {};  // without type, length and Connection, which the server adds

  /// Returns the first header of this lower-case name, or "". The header names must be in lower
  /// case, as in the answers of HttpClient. Linear in the number of headers.
  std::string_view header(std::string_view name) const noexcept;
};

}  // namespace detent::net
