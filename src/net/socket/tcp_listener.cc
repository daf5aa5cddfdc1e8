#include "net/socket/tcp_listener.h"

#include <chrono>
#include <utility>

namespace detent::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptPause{100};

}  // namespace

Result<void> TcpListener::listen(const std::string& address, std::uint16_t port) {
  error_code ec;
  const auto ip = asio::ip::make_address(address, ec);
  if (ec) {
    return Error{ErrorCode::invalid_argument,
                 "\"" + address + "\" is not an IP address; expected one such as 127.0.0.1", ""};
  }
  const tcp::endpoint endpoint(ip, port);
  const auto failed = [&] {
    const std::string host = ip.is_v6() ? "[" + address + "]" : address;
    return Error{ErrorCode::unavailable,
                 "listen on " + host + ":" + std::to_string(port) + ": " + ec.message(), ""};
  };
  acceptor_.open(endpoint.protocol(), ec);
  if (ec) return failed();
  acceptor_.set_option(asio::socket_base::reuse_address(true), ec);
  if (ec) return failed();
  acceptor_.bind(endpoint, ec);
  if (ec) return failed();
  acceptor_.listen(asio::socket_base::max_listen_connections, ec);
  if (ec) return failed();
  port_ = acceptor_.local_endpoint(ec).port();
  if (ec) return failed();
  accept();
  return ok();
}

void TcpListener::close() {
  is_closed_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  pause_timer_.cancel();
}

void TcpListener::accept() {
  acceptor_.async_accept([this](error_code ec, tcp::socket socket) {
    if (is_closed_ || ec == asio::error::operation_aborted) return;
    if (!ec) {
      admit(std::move(socket));
      return accept();
    }
    // Out of files or memory: the connection stays in the queue, and the system would report it
    // again immediately. So wait for a moment.
    pause_timer_.expires_after(kAcceptPause);
    pause_timer_.async_wait([this](error_code cancelled) {
      if (!cancelled && !is_closed_) accept();
    });
  });
}

void TcpListener::admit(tcp::socket socket) {
  error_code ec;
  socket.non_blocking(true, ec);
  if (ec) return;
  socket.set_option(tcp::no_delay(true), ec);
  admit_(std::move(socket));
}

}  // namespace detent::net
