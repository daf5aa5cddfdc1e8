// The HTTP server: the I/O thread, and the registry of connections.
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
#include "net/tcp_listener.h"

namespace detent::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::size_t kMaxRefusals = 64;  // connections above the limit that get a 503

/// Invariant: open_ is the size of connections_.
class Server final : public HttpServer, private ConnectionRegistry {
 public:
  Server(HttpServerOptions options, HttpHandler handler, ErrorPage error_page)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        error_page_(std::move(error_page)) {}
  ~Server() override { stop(milliseconds{0}); }

  // From any thread.
  Result<void> listen() { return listener_.listen(options_.address, options_.port); }
  void run() {
    thread_ = std::thread([this] { io_.run(); });
  }
  std::uint16_t port() const noexcept override { return listener_.port(); }
  std::size_t connections() const noexcept override {
    return open_.load(std::memory_order_relaxed);
  }
  void stop(milliseconds grace) override;

 private:
  void remove(HttpConnection* connection) override;
  void admit(tcp::socket socket);
  void drain(milliseconds grace);
  void finish();
  std::vector<std::shared_ptr<HttpConnection>> all_connections() const;

  const HttpServerOptions options_;
  const HttpHandler handler_;
  const ErrorPage error_page_;
  asio::io_context io_{1};
  std::thread thread_;
  std::once_flag stopped_;
  // Written by the I/O thread, read by anyone. Relaxed: it is a number to look at, it orders
  // nothing.
  std::atomic<std::size_t> open_{0};

  // Touched only by the I/O thread once it runs.
  TcpListener listener_{io_, [this](tcp::socket socket) { admit(std::move(socket)); }};
  asio::steady_timer grace_timer_{io_};
  ConnectionContext context_{.options = options_,
                             .handler = handler_,
                             .error_page = error_page_,
                             .io = io_,
                             .registry = *this};
  std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections_;
};

void Server::admit(tcp::socket socket) {
  if (connections_.size() >= options_.max_connections + kMaxRefusals) return;  // just closed
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
  listener_.close();
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
