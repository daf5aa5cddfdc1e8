// Outbound HTTP(S) calls: one I/O thread, many calls at once. To hosts that others have named, or
// to the other nodes of a cluster.
//
// A call goes where its address was checked, and nowhere else: the name is resolved once, every
// address found is shown to a filter, and the connection is made to one of just these. A single
// refused address refuses the call, so that a name cannot get by with one good address among bad
// ones. No redirect is followed, no proxy asked, and, unless options say so, no connection used
// twice. Whoever answers slowly, or for ever, is cut off by time and size; what it costs the others
// is a socket.
//
// HttpClient (http_client.h) is the other client: blocking, to a server that the user trusts.
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
#include "net/host_resolver.h"
#include "net/http_message.h"
#include "net/http_url.h"
#include "net/ip_address.h"

namespace detent::net {

/// What a call does, one after the other.
enum class CallStep : std::uint8_t {
  resolve,    // ask for the host's addresses
  filter,     // have them checked
  connect,    // to the first that lets itself be connected to
  handshake,  // of TLS; the certificate must be valid for the host
  exchange,   // send the request, read the answer
};

/// Why there is no answer. Unless the step is `exchange`, the host has not seen the request.
struct CallFailure {
  enum class Kind : std::uint8_t { failed, timed_out };
  CallStep step = CallStep::resolve;
  Kind kind = Kind::failed;
  std::string message;  // "connect: Connection refused", "timed out after 5 s connecting"
};

/// An answer is its head: of the body there is what came before the limits, or the connection's
/// end, unless options want all of it; one that is broken is a failure. Names of headers are in
/// lower case.
using CallOutcome = std::variant<HttpResponse, CallFailure>;

/// Errors say why an address may not be called. Runs on the I/O thread; must neither block nor
/// throw.
using AddressFilter = std::function<Result<void>(const IpAddress&, std::uint16_t port)>;

struct HttpCallerOptions {
  std::chrono::milliseconds resolve_timeout{5'000};
  std::chrono::milliseconds connect_timeout{5'000};  // for each address
  std::chrono::milliseconds handshake_timeout{5'000};
  std::chrono::milliseconds answer_timeout{15'000};  // from the connection to the answer's head
  std::chrono::milliseconds body_timeout{2'000};     // from there to the body's end
  std::chrono::milliseconds total_timeout{30'000};
  std::size_t max_head_bytes = 16 * 1024;
  std::size_t max_body_bytes = 64 * 1024;  // give or take one read
  /// An answer whose body is cut short, by a limit or the connection's end, is a failure.
  bool wants_whole_answers = false;
  /// Connections that are kept open for another call, to each host; one is used again only if
  /// nothing has come over it since its last answer. 0: none.
  std::size_t max_idle_connections = 0;
  std::chrono::milliseconds idle_timeout{20'000};
  std::string ca_file;  // PEM, trusted instead of the system's authorities; empty: those
};

/// Thread-safe. Bounds of how many calls are under way are the caller's to keep.
class HttpCaller {
 public:
  using Done = UniqueFunction<void(CallOutcome)>;
  using CallNumber = std::uint64_t;
  /// For who has something else to do when an answer takes long. `tell` runs on the I/O thread, at
  /// most once, when there is none after so long; the call goes on.
  struct Late {
    std::chrono::milliseconds after{0};
    UniqueFunction<void()> tell = {};  // empty: nobody wants to know
  };

  /// Starts the I/O thread. `resolver` must outlive this. Errors: `invalid_argument` for a ca_file
  /// that cannot be read; `unavailable` when the system is out of threads.
  static Result<std::unique_ptr<HttpCaller>> start(HttpCallerOptions options,
                                                   HostResolver& resolver, AddressFilter filter);
  /// Cuts the calls under way; their `done` does not run.
  virtual ~HttpCaller() = default;

  /// Sends a request and runs `done` once, on the I/O thread; it must neither block nor throw. Of
  /// `request` method, headers and body count; the URL says the rest. The headers Host,
  /// Content-Length and Connection are made here. Requires: HTTP/1.1 can carry method and header
  /// names.
  virtual CallNumber call(HttpUrl url, HttpRequest request, Done done, Late late) = 0;
  CallNumber call(HttpUrl url, HttpRequest request, Done done) {
    return call(std::move(url), std::move(request), std::move(done), {});
  }
  /// Ends a call whose answer nobody wants: its connection is closed, which the host may notice,
  /// and `done` does not run, unless it has begun to.
  virtual void abandon(CallNumber number) = 0;
};

}  // namespace detent::net
