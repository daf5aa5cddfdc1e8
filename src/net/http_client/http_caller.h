// Outbound HTTP(S) calls: one I/O thread for many calls at the same time. Calls go to hosts that
// clients have named, or to the other nodes of a cluster.
//
// A call connects only to a checked address. The name is resolved once, a filter checks every
// address, and the connection uses one of these addresses. If the filter refuses one address, the
// call fails, so that an attacker cannot hide a bad address among good addresses. It follows no
// redirects and uses no proxy. Unless options say so, it uses each connection once. Limits of time
// and size cut off slow or endless answers, which occupy only a socket.
//
// HttpClient (http_client.h) is a blocking client for a server that the user trusts. Both share
// the connection, its TLS and the parser (client_socket.h, http_parser.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/result.h"
#include "detent/unique_function.h"
#include "net/address/host_resolver.h"
#include "net/address/ip_address.h"
#include "net/message/http_message.h"
#include "net/message/http_url.h"

namespace detent::net {

/// The steps of a call, in their order.
enum class CallStep : std::uint8_t {
  resolve,    // ask for the host's addresses
  filter,     // check the addresses
  connect,    // try one address after another
  handshake,  // TLS; the certificate must be valid for the host
  exchange,   // send the request, read the answer
};

/// The reason for a missing answer. Unless the step is `exchange`, the host has not seen the
/// request.
struct CallFailure {
  enum class Kind : std::uint8_t { failed, timed_out };
  CallStep step = CallStep::resolve;
  Kind kind = Kind::failed;
  std::string message;  // "connect: Connection refused", "timed out after 5 s connecting"
};

/// An answer always has its head. Its body may be cut off by a limit or by the end of the
/// connection, unless options require whole answers. A malformed answer is a failure. Header names
/// are in lower case.
using CallOutcome = std::variant<HttpResponse, CallFailure>;

/// Returns an error if the address must not be called. Runs on the I/O thread; must neither block
/// nor throw.
using AddressFilter = std::function<Result<void>(const IpAddress&, std::uint16_t port)>;

struct HttpCallerOptions {
  std::chrono::milliseconds resolve_timeout{5'000};
  std::chrono::milliseconds connect_timeout{5'000};  // for each address
  std::chrono::milliseconds handshake_timeout{5'000};
  std::chrono::milliseconds answer_timeout{
      15'000};                                    // from the connection to the head of the answer
  std::chrono::milliseconds body_timeout{2'000};  // from the head of the answer to its end
  std::chrono::milliseconds total_timeout{30'000};
  std::size_t max_head_bytes = 16 * 1024;
  std::size_t max_body_bytes = 64 * 1024;  // one read more or less
  /// If true, a body that is cut short by a limit or by the end of the connection is a failure.
  bool wants_whole_answers = false;
  /// The most idle connections to each host that are kept for later calls. A connection is used
  /// again only if no bytes have arrived since its last answer. 0: none are kept.
  std::size_t max_idle_connections = 0;
  std::chrono::milliseconds idle_timeout{20'000};
  std::string ca_file;  // PEM; replaces the certificate authorities of the system; empty: these
};

/// Thread-safe. The caller must limit the number of calls at the same time.
class HttpCaller {
 public:
  using Done = UniqueFunction<void(CallOutcome)>;
  using CallNumber = std::uint64_t;
  /// Notifies a caller that has an alternative to a slow answer. `tell` runs on the I/O thread, at
  /// most once, if there is no answer after this time. The call continues.
  struct WhenSlow {
    std::chrono::milliseconds after{0};
    UniqueFunction<void()> tell = {};  // empty: the caller has no alternative
  };

  /// Starts the I/O thread. `resolver` must outlive this. Errors: `invalid_argument` for a ca_file
  /// that cannot be read; `unavailable` when the system is out of threads.
  static Result<std::unique_ptr<HttpCaller>> start(HttpCallerOptions options,
                                                   HostResolver& resolver, AddressFilter filter);
  /// Cuts the running calls; their `done` does not run.
  virtual ~HttpCaller() = default;

  /// Sends a request and runs `done` once, on the I/O thread; `done` must neither block nor throw.
  /// From `request` it uses method, headers and body; the URL supplies the rest. It adds the
  /// headers Host, Content-Length and Connection. Requires: HTTP/1.1 permits the method and the
  /// header names.
  virtual CallNumber call(HttpUrl url, HttpRequest request, Done done, WhenSlow slow) = 0;
  CallNumber call(HttpUrl url, HttpRequest request, Done done) {
    return call(std::move(url), std::move(request), std::move(done), {});
  }
  /// Ends a call without an answer. The connection is closed, which the host may notice. `done`
  /// does not run, unless it has already started.
  virtual void abandon(CallNumber number) = 0;
};

}  // namespace detent::net
