// TLS for the servers of this folder, over OpenSSL: a certificate, and its sessions.
//
// A session uses a non-blocking socket, as the server itself does. It reads and writes as much as
// is possible now, and returns the event to wait for. Connections with and without TLS are
// therefore served in the same way, and a connection without TLS has no extra cost.
#pragma once

#include <openssl/types.h>

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "detent/clock.h"

namespace detent::net {

/// One connection's TLS. Confined to one thread; the socket must outlive it.
class TlsSession {
 public:
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  enum class Step : std::uint8_t { done, wants_read, wants_write, failed };

  /// Continues the handshake. Call it again when the socket is ready for the returned event.
  Step handshake();

  // Reads as from a socket: `would_block` if no bytes are available now, `eof` if the client has
  // closed its side. Requires: the handshake is done.

  std::size_t read(std::span<char> buffer, boost::system::error_code& ec);
  std::size_t peek(std::span<char> buffer, boost::system::error_code& ec);
  std::size_t write(std::string_view bytes, boost::system::error_code& ec);
  /// Returns true if decrypted bytes are available, even if the socket has none.
  bool has_pending() const;
  /// Tells the client that no more bytes will come.
  void end();

 private:
  friend class TlsServer;
  struct Free {
    void operator()(SSL* ssl) const noexcept;
  };
  TlsSession(int socket, SSL* ssl) : socket_(socket), ssl_(ssl) {}
  std::size_t result(int size, std::size_t done, boost::system::error_code& ec);

  int socket_;
  std::unique_ptr<SSL, Free> ssl_;  // refers to socket_
};

/// TLS 1.2 and 1.3 with the certificate of two files, which can be read again. Thread-safe.
class TlsServer {
 public:
  /// Loads two PEM files: the certificate chain (server certificate first), and its key. Errors:
  /// `invalid_argument`, with the file and the reason, if they cannot be read, are empty or do not
  /// belong together.
  static Result<std::shared_ptr<TlsServer>> load(std::string certificate_file,
                                                 std::string key_file);

  /// Reads the files again for later sessions. On an error the old certificate stays in use.
  Result<void> reload() DETENT_EXCLUDES(mutex_);
  /// The names and addresses that the certificate is for (subjectAltName).
  std::vector<std::string> names() const DETENT_EXCLUDES(mutex_);
  /// The reasons why clients will refuse the certificate: it or a certificate of its chain is not
  /// valid at `now`, or it does not cover one of `hosts`. One sentence per reason.
  std::vector<std::string> faults(WallTime now, const std::vector<std::string>& hosts) const
      DETENT_EXCLUDES(mutex_);
  /// Null when there is no memory.
  std::unique_ptr<TlsSession> accept(int socket) const DETENT_EXCLUDES(mutex_);

 private:
  TlsServer(std::string certificate_file, std::string key_file)
      : certificate_file_(std::move(certificate_file)), key_file_(std::move(key_file)) {}
  Result<std::shared_ptr<SSL_CTX>> read() const;
  std::shared_ptr<SSL_CTX> in_force() const DETENT_EXCLUDES(mutex_);

  const std::string certificate_file_;
  const std::string key_file_;
  mutable Mutex mutex_;
  std::shared_ptr<SSL_CTX> context_ DETENT_GUARDED_BY(mutex_);  // and accept(), for a moment
};

}  // namespace detent::net
