// Starts the HTTP server, and decides which connections it accepts.
#include "net/http_server/http_server.h"

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <utility>

#include "net/http_server/http_connection.h"
#include "net/socket/connection_loop.h"

namespace detent::net {
namespace {

using boost::asio::ip::tcp;
using std::chrono::milliseconds;

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
  // Last, because its thread uses the members above.
  ConnectionLoop<HttpConnection> loop_{[this](tcp::socket socket) { admit(std::move(socket)); }};
};

void Server::admit(tcp::socket socket) {
  boost::system::error_code ec;
  const auto address = socket.remote_endpoint(ec).address();
  if (ec) return;  // the client has already gone
  AddressCounts::Ticket ticket = loop_.addresses().take(address);
  const std::size_t excess = options_.max_refusals;
  const std::size_t most_of_address = options_.max_connections_of_address;
  const bool is_address_full = ticket.count() > most_of_address && !loop_.close_silent_of(ticket);
  if (ticket.count() > most_of_address + excess) return;  // close it without an answer
  const bool is_full =
      loop_.size() >= options_.max_connections && (is_address_full || !loop_.close_silent());
  if (loop_.size() >= options_.max_connections + excess) return;
  const auto connection =
      std::make_shared<HttpConnection>(context_, std::move(socket), address.to_string());
  loop_.add(connection, std::move(ticket));
  if (is_full) {
    connection->refuse(503, "too many connections");
  } else if (is_address_full) {
    connection->refuse(503, "too many connections from this address");
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
