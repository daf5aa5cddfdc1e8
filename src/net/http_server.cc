// The HTTP server: a listening socket, the I/O thread, and the registry of connections.
#include "net/http_server.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "detent/check.h"
#include "net/http_connection.h"

namespace detent::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::size_t kMaxRefusals = 64;  // connections above the limit that get a 503
constexpr milliseconds kAcceptPause{100};

/// Invariant: open_ is the size of connections_.
class Server final : public HttpServer, private ConnectionRegistry {
 public:
  Server(HttpServerOptions options, HttpHandler handler, ErrorPage error_page)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        error_page_(std::move(error_page)) {}
  ~Server() override { stop(milliseconds{0}); }

  // From any thread.
  Result<void> listen();
  void run() {
    thread_ = std::thread([this] { io_.run(); });
  }
  std::uint16_t port() const noexcept override { return port_; }
  std::size_t connections() const noexcept override {
    return open_.load(std::memory_order_relaxed);
  }
  void stop(milliseconds grace) override;

 private:
  void remove(HttpConnection* connection) override;
  void accept();
  void admit(tcp::socket socket);
  void drain(milliseconds grace);
  void finish();
  std::vector<std::shared_ptr<HttpConnection>> all_connections() const;

  const HttpServerOptions options_;
  const HttpHandler handler_;
  const ErrorPage error_page_;
  asio::io_context io_{1};
  std::thread thread_;
  std::uint16_t port_ = 0;
  std::once_flag stopped_;
  // Written by the I/O thread, read by anyone. Relaxed: it is a number to look at, it orders
  // nothing.
  std::atomic<std::size_t> open_{0};

  // Touched only by the I/O thread once it runs.
  tcp::acceptor acceptor_{io_};
  asio::steady_timer pause_timer_{io_};
  asio::steady_timer grace_timer_{io_};
  ConnectionContext context_{.options = options_,
                             .handler = handler_,
                             .error_page = error_page_,
                             .io = io_,
                             .registry = *this};
  std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections_;
};

Result<void> Server::listen() {
  error_code ec;
  const auto address = asio::ip::make_address(options_.address, ec);
  if (ec) {
    return Error{ErrorCode::invalid_argument, "\"" + options_.address + "\" is no IP address", ""};
  }
  const tcp::endpoint endpoint(address, options_.port);
  const auto failed = [&] {
    const std::string host = address.is_v6() ? "[" + options_.address + "]" : options_.address;
    return Error{ErrorCode::unavailable,
                 "listen on " + host + ":" + std::to_string(options_.port) + ": " + ec.message(),
                 ""};
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

void Server::accept() {
  acceptor_.async_accept([this](error_code ec, tcp::socket socket) {
    if (context_.is_draining || ec == asio::error::operation_aborted) return;
    if (!ec) {
      admit(std::move(socket));
      return accept();
    }
    // Out of files or memory: the connection stays in the queue and would be reported again and
    // again, so it is left there for a moment.
    pause_timer_.expires_after(kAcceptPause);
    pause_timer_.async_wait([this](error_code cancelled) {
      if (!cancelled && !context_.is_draining) accept();
    });
  });
}

void Server::admit(tcp::socket socket) {
  if (connections_.size() >= options_.max_connections + kMaxRefusals) return;  // just closed
  error_code ec;
  socket.non_blocking(true, ec);
  if (ec) return;
  socket.set_option(tcp::no_delay(true), ec);
  const bool is_over_limit = connections_.size() >= options_.max_connections;
  const auto connection = std::make_shared<HttpConnection>(context_, std::move(socket));
  connections_.emplace(connection.get(), connection);
  open_.store(connections_.size(), std::memory_order_relaxed);
  if (is_over_limit) {
    connection->refuse(503, "too many connections");
  } else {
    connection->start();
  }
}

void Server::remove(HttpConnection* connection) {
  connections_.erase(connection);
  open_.store(connections_.size(), std::memory_order_relaxed);
  if (context_.is_draining && connections_.empty()) io_.stop();
}

void Server::stop(milliseconds grace) {
  std::call_once(stopped_, [this, grace] {
    if (!thread_.joinable()) return;  // never ran
    DETENT_CHECK(std::this_thread::get_id() != thread_.get_id());
    asio::post(io_, [this, grace] { drain(grace); });
    thread_.join();
  });
}

void Server::drain(milliseconds grace) {
  context_.is_draining = true;
  error_code ignored;
  acceptor_.close(ignored);
  pause_timer_.cancel();
  for (const auto& connection : all_connections()) connection->drain();
  if (connections_.empty() || grace <= milliseconds{0}) return finish();
  grace_timer_.expires_after(grace);
  grace_timer_.async_wait([this](error_code) { finish(); });
}

/// Cuts what is left and ends the I/O thread.
void Server::finish() {
  for (const auto& connection : all_connections()) connection->close();
  io_.stop();
}

/// A copy: closing a connection removes it from the registry.
std::vector<std::shared_ptr<HttpConnection>> Server::all_connections() const {
  std::vector<std::shared_ptr<HttpConnection>> all;
  all.reserve(connections_.size());
  for (const auto& [key, connection] : connections_) all.push_back(connection);
  return all;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerOptions options,
                                                      HttpHandler handler, ErrorPage error_page) {
  try {  // Asio and std::thread throw when the system is out of files or threads
    auto server =
        std::make_unique<Server>(std::move(options), std::move(handler), std::move(error_page));
    TRY(server->listen());
    server->run();
    return std::unique_ptr<HttpServer>(std::move(server));
  } catch (const std::exception& exception) {
    return Error{ErrorCode::unavailable, std::string("start HTTP server: ") + exception.what(), ""};
  }
}

}  // namespace detent::net
