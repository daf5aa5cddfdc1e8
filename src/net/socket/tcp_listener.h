// A listening socket, for the servers of this folder.
//
// Internal to this folder, and included by its .cc files only: it shows Boost.Asio. For use on the
// I/O thread; listen() may be called before this thread runs.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace detent::net {

class TcpListener {
 public:
  /// Receives each new connection. Its socket is non-blocking and does not use Nagle's algorithm.
  using Admit = std::function<void(boost::asio::ip::tcp::socket)>;
  TcpListener(boost::asio::io_context& io, Admit admit)
      : admit_(std::move(admit)), acceptor_(io), pause_timer_(io) {}

  /// Binds to an IP address and begins to accept. Errors: `unavailable` if the address is in use or
  /// not permitted ("listen on 127.0.0.1:7070: Address already in use"); `invalid_argument` if it
  /// is not an IP address.
  Result<void> listen(const std::string& address, std::uint16_t port);
  /// The bound port, also if the requested port was 0.
  std::uint16_t port() const noexcept { return port_; }
  /// Accepts no more connections.
  void close();

 private:
  void accept();
  void admit(boost::asio::ip::tcp::socket socket);

  const Admit admit_;
  std::uint16_t port_ = 0;
  bool is_closed_ = false;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_timer_;
};

}  // namespace detent::net
