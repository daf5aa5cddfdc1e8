// A TLS server with its own certificate, for tests of certificate checks. Tests only.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <thread>

namespace detent::net {

/// Answers each request with `200` and its own target as body; one connection at a time.
class TlsServerRig {
 public:
  /// With the certificate and key in the files NAME.crt and NAME.key.
  explicit TlsServerRig(const std::string& certificate) {
    tls_.use_certificate_file(certificate + ".crt", boost::asio::ssl::context::pem);
    tls_.use_private_key_file(certificate + ".key", boost::asio::ssl::context::pem);
    thread_ = std::thread([this] { serve(); });
  }
  ~TlsServerRig() {
    is_stopping_ = true;
    boost::asio::io_context io;
    boost::asio::ip::tcp::socket waker(io);
    boost::system::error_code ignored;
    waker.connect(acceptor_.local_endpoint(), ignored);
    waker.close(ignored);
    thread_.join();
  }
  TlsServerRig(const TlsServerRig&) = delete;
  TlsServerRig& operator=(const TlsServerRig&) = delete;

  std::string port() const { return std::to_string(acceptor_.local_endpoint().port()); }

 private:
  void serve() {
    while (!is_stopping_) {
      boost::system::error_code ec;
      boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream(acceptor_.accept(), tls_);
      stream.handshake(boost::asio::ssl::stream_base::server, ec);
      std::string request;
      std::array<char, 4096> part{};
      while (!ec && request.find("\r\n\r\n") == std::string::npos) {
        request.append(part.data(), stream.read_some(boost::asio::buffer(part), ec));
      }
      if (ec) continue;
      const std::string target = request.substr(5, request.find(' ', 5) - 5);
      boost::asio::write(stream, boost::asio::buffer("HTTP/1.1 200 OK\r\n\r\n" + target), ec);
    }
  }

  boost::asio::io_context io_;
  boost::asio::ssl::context tls_{boost::asio::ssl::context::tls_server};
  boost::asio::ip::tcp::acceptor acceptor_{
      io_, {boost::asio::ip::make_address("127.0.0.1"), boost::asio::ip::port_type{0}}};
  std::atomic<bool> is_stopping_{false};  // set by the test, read by the thread
  std::thread thread_;
};

}  // namespace detent::net
