// A small blocking HTTP/1.1 client over one kept-alive connection, for the command line, the
// examples and the tests.
//
// What matters in a client of a task server is to know whether a request may have been carried out.
// So a request is sent again only when that is certain to be harmless: a connection that turns out
// to be closed before the first byte of a request goes out is replaced for any method; one that is
// lost afterwards, for GET only. In every other case the outcome is unknown, and the error says so.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http_message.h"

namespace detent::net {

struct HttpClientOptions {
  HttpHeaders headers = {};  // sent with each request
  std::string ca_file = {};  // certificates that are trusted, in PEM; "": the system's
};

/// Thread-compatible; one request at a time, or several pipelined by `send_all`.
///
/// Errors of both kinds of sending, with the address named: `unavailable` (cannot connect,
/// connection lost, time-out), `too_large` (an answer above 64 MiB), `internal` (an answer that is
/// no HTTP), `invalid_argument` (a method or target that cannot be sent). After an error the next
/// request connects anew. Redirects are not followed.
class HttpClient {
 public:
  /// `url` is "http://HOST[:PORT]", where HOST is a name or an address (v6 in brackets) and PORT is
  /// 80 unless given; a path is refused. With "https://" it is 443, TLS is 1.2 at least, and the
  /// server's certificate must be trusted and of HOST. Does not connect yet. `timeout` is for one
  /// call of send or send_all, connecting included; only the look-up of a name takes as long as the
  /// system lets it. Errors: `invalid_argument`, also for a ca_file that holds no certificates, a
  /// header with control characters, and a timeout that is not above 0 or well over a day.
  static Result<std::unique_ptr<HttpClient>> create(std::string_view url,
                                                    std::chrono::milliseconds timeout,
                                                    HttpClientOptions options = {});
  virtual ~HttpClient() = default;

  /// Sends one request and waits for its answer; connects first when needed. The headers Host and
  /// Content-Length are made here.
  virtual Result<HttpResponse> send(const HttpRequest& request) = 0;

  /// Pipelines the requests on the connection and reads the answers in order. Fails as a whole, and
  /// is never repeated.
  virtual Result<std::vector<HttpResponse>> send_all(const std::vector<HttpRequest>& requests) = 0;

  /// After a sending that failed: whether any of it may have reached the server. False when there
  /// was no connection, so that it is harmless to send it again.
  virtual bool may_have_been_seen() const noexcept { return true; }

  /// Ends the sending under way, and fails all later ones with `unavailable`. Only our side of the
  /// connection is closed, so an answer that is on its way still arrives, if it comes within half a
  /// second: some servers and proxies take no notice of a closed side. Thread-safe.
  virtual void interrupt() noexcept {}
};

}  // namespace detent::net
