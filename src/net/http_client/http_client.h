// A small blocking HTTP/1.1 client over one kept-alive connection, for the command line, the
// examples and the tests.
//
// The user of a task server must know whether a request may have been carried out. The client
// therefore repeats a request only if a repeat is certainly harmless:
//
// - If the connection is found closed before the first byte of a request is sent, it is replaced,
//   for any method.
// - If the connection is lost later, only a GET is repeated.
//
// In all other cases the outcome is unknown, and the error says so.
//
// HttpCaller (http_caller.h) makes many calls at a time on a thread of its own. This client is not
// a blocking face of HttpCaller, for three reasons: a call runs on the calling thread and needs no
// second one; interrupt() closes only the sending side, so that an answer on its way still arrives;
// and requests are pipelined. Both share the connection, its TLS and the parser (client_socket.h,
// http_parser.h).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/message/http_message.h"

namespace detent::net {

struct HttpClientOptions {
  HttpHeaders headers = {};  // sent with each request
  std::string ca_file = {};  // PEM; the trusted certificates; "": the certificates of the system
};

/// Thread-compatible; one request at a time, or several pipelined by `send_all`.
///
/// Errors of send and send_all, with the address in the message: `unavailable` (cannot connect,
/// connection lost, time-out), `too_large` (an answer above 64 MiB), `internal` (an answer that is
/// not HTTP), `invalid_argument` (a method or target that cannot be sent). After an error the next
/// request opens a new connection. Redirects are not followed.
class HttpClient {
 public:
  /// `url` is "http://HOST[:PORT]". HOST is a name or an address (v6 in brackets), and PORT is 80
  /// by default; a path is refused. For "https://" the port is 443, TLS is 1.2 or later, and the
  /// certificate of the server must be trusted and match HOST. Does not connect yet. `timeout`
  /// limits one call of send or send_all, including the connection; only the name look-up may take
  /// longer. Errors: `invalid_argument`, also for a ca_file without certificates, a header with
  /// control characters, and a timeout that is not above 0 or far above a day.
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

  /// After a failed send: returns true if the server may have received a part of it. False means
  /// that there was no connection, so a repeat is harmless.
  virtual bool may_have_been_seen() const noexcept { return true; }

  /// Ends the running send; all later sends fail with `unavailable`. It closes only this side of
  /// the connection. An answer that is on its way therefore still arrives, if it comes within half
  /// a second; some servers and proxies ignore a closed side. Thread-safe.
  virtual void interrupt() noexcept {}
};

}  // namespace detent::net
