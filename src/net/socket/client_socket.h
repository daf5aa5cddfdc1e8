// The connection of an HTTP client to a server, with or without TLS. HttpClient (blocking) and
// HttpCaller (many calls on one thread) share it, so that both trust the same certificates.
#pragma once

#include <openssl/ssl.h>

#include <sys/socket.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

namespace detent::net {

/// Sets up the TLS of a client: version 1.2 or later, and only with servers whose certificate is
/// trusted. Trusted are the certificates of a PEM file, or those of the system if `ca_file` is
/// empty. Returns an error for a file without certificates.
inline boost::system::error_code trust(boost::asio::ssl::context& tls, const std::string& ca_file) {
  tls.set_options(boost::asio::ssl::context::default_workarounds);
  SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
  tls.set_verify_mode(boost::asio::ssl::verify_peer);
  boost::system::error_code ec;
  if (ca_file.empty()) {
    tls.set_default_verify_paths(ec);
  } else {
    tls.load_verify_file(ca_file, ec);
  }
  return ec;
}

/// Thread-compatible. It must live until its operations have ended; close() ends them.
class ClientSocket {
 public:
  using error_code = boost::system::error_code;
  using Tcp = boost::asio::ip::tcp;

  explicit ClientSocket(boost::asio::io_context& io) : tcp_(io) {}

  /// The connection without TLS, for connecting it.
  Tcp::socket& tcp() noexcept { return tcp_; }

  /// Encrypts the connection. The certificate of the server must be valid for `host`. `done` gets
  /// an error_code. RFC 6066, section 3: only a name is sent to the server, not an address.
  template <class Done>
  void async_handshake(boost::asio::ssl::context& tls, const std::string& host, Done done) {
    tls_.emplace(tcp_, tls);
    error_code ec;
    boost::asio::ip::make_address(host, ec);
    const bool is_name = ec.failed();
    if (is_name) SSL_set_tlsext_host_name(tls_->native_handle(), host.c_str());
    tls_->set_verify_callback(boost::asio::ssl::host_name_verification(host), ec);
    if (ec) return done(ec);
    tls_->async_handshake(boost::asio::ssl::stream_base::client, std::move(done));
  }
  /// The reason for a failed handshake. OpenSSL stores the reason for a refused certificate
  /// separately from the error code.
  std::string handshake_error(error_code ec) {
    const auto verdict = SSL_get_verify_result(tls_->native_handle());
    if (verdict == X509_V_OK) return ec.message();
    return std::string("certificate: ") + X509_verify_cert_error_string(verdict);
  }

  /// Sends all bytes. `done` gets an error_code and a size.
  template <class Buffer, class Done>
  void async_write(const Buffer& buffer, Done done) {
    if (tls_) {
      boost::asio::async_write(*tls_, buffer, std::move(done));
    } else {
      boost::asio::async_write(tcp_, buffer, std::move(done));
    }
  }
  template <class Buffer, class Done>
  void async_read_some(const Buffer& buffer, Done done) {
    if (tls_) {
      tls_->async_read_some(buffer, std::move(done));
    } else {
      tcp_.async_read_some(buffer, std::move(done));
    }
  }

  /// Returns true if the server has neither sent bytes since the last read nor closed the
  /// connection.
  bool is_quiet() {
    std::array<char, 1> byte{};
    return ::recv(tcp_.native_handle(), byte.data(), byte.size(), MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  void close() {
    error_code ignored;
    tcp_.close(ignored);
  }

 private:
  Tcp::socket tcp_;
  std::optional<boost::asio::ssl::stream<Tcp::socket&>> tls_;  // empty: no TLS
};

}  // namespace detent::net
