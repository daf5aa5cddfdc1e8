// Connections that take turns with their handlers, and the server that owns them.
#include "net/socket/stream_server.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "net/socket/connection_loop.h"

namespace detent::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::size_t kReadBytes = 64 * 1024;  // from one connection at a time

class Connection;

/// The shared state of the connections of one server. For use on the I/O thread.
struct Shared {
  const StreamServerOptions& options;
  ConnectionLoop<Connection>& loop;
  std::array<char, kReadBytes> read_buffer = {};
};

/// For use on the I/O thread, except send(). At most one wait for readability is outstanding. The
/// server holds the connection exactly until it is closed.
class Connection final : public Stream, public std::enable_shared_from_this<Connection> {
 public:
  Connection(Shared& shared, tcp::socket socket)
      : shared_(shared), socket_(std::move(socket)), timer_(shared.loop.io()) {}

  void start(const StreamHandlerFactory& factory) {
    handler_ = factory(shared_from_this());
    read({});
  }
  void drain() {
    if (is_reading_) close();
  }

  bool has_input() const {
    error_code ignored;
    return socket_.available(ignored) > 0;
  }

  void send(std::string bytes) override {
    asio::post(shared_.loop.io(), [self = shared_from_this(), bytes = std::move(bytes)]() mutable {
      self->write(std::move(bytes));
    });
  }
  void read(std::optional<milliseconds> within) override;
  void close() override;

 private:
  void watch();
  void on_readable(error_code ec);
  void receive();
  void peek();
  void write(std::string bytes);
  void write_more();
  void await_writable();
  void close_after(milliseconds delay);
  void stop_timer();

  Shared& shared_;
  tcp::socket socket_;
  std::unique_ptr<StreamHandler> handler_;
  bool is_watching_ = false;
  bool is_reading_ = false;  // the handler waits for bytes; if false, the handler has the turn
  bool has_ended_ = false;   // the client has closed its sending side
  bool is_closed_ = false;
  bool is_heard_ = false;  // the client has sent bytes
  std::string out_;
  std::size_t written_ = 0;
  asio::steady_timer timer_;
  std::uint64_t timer_number_ = 0;
};

void Connection::read(std::optional<milliseconds> within) {
  if (has_ended_ || shared_.loop.is_draining()) return close();
  is_reading_ = true;
  if (within) close_after(*within);
  watch();
}

void Connection::watch() {
  if (is_closed_ || std::exchange(is_watching_, true)) return;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code ec) {
    self->is_watching_ = false;
    self->on_readable(ec);
  });
}

void Connection::on_readable(error_code ec) {
  if (is_closed_) return;
  if (ec) return close();
  if (is_reading_) {
    receive();
  } else {
    peek();
  }
}

void Connection::receive() {
  error_code ec;
  const std::size_t size = socket_.read_some(asio::buffer(shared_.read_buffer), ec);
  if (ec == asio::error::would_block) return watch();
  if (ec) return close();
  if (!std::exchange(is_heard_, true)) shared_.loop.heard(this);
  is_reading_ = false;
  stop_timer();
  handler_->on_bytes({shared_.read_buffer.data(), size});
  watch();
}

/// The handler has the turn. Checks whether the client has gone.
void Connection::peek() {
  char byte = 0;
  error_code ec;
  socket_.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, ec);
  if (ec == asio::error::would_block) return watch();
  if (ec == asio::error::eof) {
    has_ended_ = true;
    return handler_->on_end();
  }
  if (ec) return close();
  // More bytes have arrived. They stay in the socket, so nothing else can be learned from there.
}

void Connection::write(std::string bytes) {
  if (is_closed_) return;
  out_ = std::move(bytes);
  written_ = 0;
  write_more();
}

void Connection::write_more() {
  while (written_ < out_.size()) {
    error_code ec;
    written_ += socket_.write_some(asio::buffer(out_) + written_, ec);
    if (ec == asio::error::would_block) return await_writable();
    if (ec) return close();
  }
  stop_timer();
  out_ = {};
  handler_->on_sent();
}

void Connection::await_writable() {
  close_after(shared_.options.write_timeout);
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code ec) {
    if (self->is_closed_) return;
    if (ec) return self->close();
    self->write_more();
  });
}

void Connection::close_after(milliseconds delay) {
  timer_.expires_after(delay);
  timer_.async_wait([self = shared_from_this(), number = ++timer_number_](error_code ec) {
    if (!ec && number == self->timer_number_) self->close();
  });
}

/// An expired timer whose handler has not run yet cannot be cancelled. The new number makes the
/// handler do nothing.
void Connection::stop_timer() {
  ++timer_number_;
  timer_.cancel();
}

void Connection::close() {
  if (std::exchange(is_closed_, true)) return;
  const auto self = shared_from_this();
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  handler_->on_closed();
  shared_.loop.remove(this);
}

class Server final : public StreamServer {
 public:
  Server(StreamServerOptions options, StreamHandlerFactory factory)
      : options_(std::move(options)), factory_(std::move(factory)) {}

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

  const StreamServerOptions options_;
  const StreamHandlerFactory factory_;
  Shared shared_{.options = options_, .loop = loop_};
  // Last, because its thread uses the members above.
  ConnectionLoop<Connection> loop_{[this](tcp::socket socket) { admit(std::move(socket)); }};
};

void Server::admit(tcp::socket socket) {
  error_code ignored;
  const auto address = socket.remote_endpoint(ignored).address();
  if (ignored) return;  // the client has already gone
  AddressCounts::Ticket ticket = loop_.addresses().take(address);
  const bool is_address_full = ticket.count() > options_.max_connections_of_address;
  if (is_address_full && !loop_.close_silent_of(ticket)) return;  // close the new connection
  if (loop_.size() >= options_.max_connections && !loop_.close_silent()) return;
  // A client may wait for hours without sending bytes. Only TCP notices that its machine has gone.
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto connection = std::make_shared<Connection>(shared_, std::move(socket));
  loop_.add(connection, std::move(ticket));
  connection->start(factory_);
}

}  // namespace

Result<std::unique_ptr<StreamServer>> StreamServer::start(StreamServerOptions options,
                                                          StreamHandlerFactory factory) {
  try {  // Asio and std::thread throw when the system is out of files or threads
    auto server = std::make_unique<Server>(std::move(options), std::move(factory));
    TRY(server->start());
    return std::unique_ptr<StreamServer>(std::move(server));
  } catch (const std::exception& exception) {
    return Error{ErrorCode::unavailable, std::string("start server: ") + exception.what(), ""};
  }
}

}  // namespace detent::net
