// The HTTP server: which connections are taken.
#include "net/http_server.h"

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <utility>

#include "net/connection_loop.h"
#include "net/http_connection.h"

namespace detent::net {
namespace {

using boost::asio::ip::tcp;
using std::chrono::milliseconds;

constexpr std::size_t kMaxRefusals = 64;  // connections above a limit that get a 503

class Server final : public HttpServer {
 public:
  Server(HttpServerOptions options, HttpHandler handler, ErrorPage error_page, HeadCheck check)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        error_page_(std::move(error_page)),
        check_(std::move(check)) {}

  Result<void> start() {
    TRY(loop_.listen(options_.address, options_.port));
    loop_.run();
    return ok();
  }
  std::uint16_t port() const noexcept override { return loop_.port(); }
  std::size_t connections() const noexcept override { return loop_.size(); }
  void stop(milliseconds grace) override { loop_.stop(grace); }

 private:
  void admit(tcp::socket socket);

  const HttpServerOptions options_;
  const HttpHandler handler_;
  const ErrorPage error_page_;
  const HeadCheck check_;
  ConnectionContext context_{.options = options_,
                             .handler = handler_,
                             .error_page = error_page_,
                             .check = check_,
                             .loop = loop_};
  // Last: its thread uses the above.
  ConnectionLoop<HttpConnection> loop_{[this](tcp::socket socket) { admit(std::move(socket)); }};
};

void Server::admit(tcp::socket socket) {
  if (loop_.size() >= options_.max_connections + kMaxRefusals) return;  // just closed
  const bool is_over_limit = loop_.size() >= options_.max_connections;
  boost::system::error_code ec;
  const auto address = socket.remote_endpoint(ec).address();
  if (ec) return;  // it has gone already
  AddressCounts::Ticket ticket = loop_.addresses().take(address);
  const std::size_t of_address = ticket.count();
  if (of_address > options_.max_connections_of_address + kMaxRefusals) return;
  const auto connection =
      std::make_shared<HttpConnection>(context_, std::move(socket), address.to_string());
  loop_.add(connection, std::move(ticket));
  if (is_over_limit) {
    connection->refuse(503, "too many connections");
  } else if (of_address > options_.max_connections_of_address) {
    connection->refuse(503, "too many connections of this address");
  } else {
    connection->start();
  }
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerOptions options,
                                                      HttpHandler handler, ErrorPage error_page,
                                                      HeadCheck check) {
  try {  // Asio and std::thread throw when the system is out of files or threads
    auto server = std::make_unique<Server>(std::move(options), std::move(handler),
                                           std::move(error_page), std::move(check));
    TRY(server->start());
    return std::unique_ptr<HttpServer>(std::move(server));
  } catch (const std::exception& exception) {
    return Error{ErrorCode::unavailable, std::string("start HTTP server: ") + exception.what(), ""};
  }
}

}  // namespace detent::net
