// Connections that take turns with their handlers, and the server that keeps them.
#include "net/stream_server.h"

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "net/tcp_listener.h"

namespace detent::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::size_t kReadBytes = 64 * 1024;  // from one connection at a time

class Connection;

/// What the connections of a server share. Confined to the I/O thread.
struct Shared {
  const StreamServerOptions& options;
  asio::io_context& io;
  std::function<void(Connection*)> remove;  // a connection is closed: lets go of it
  bool is_draining = false;
  std::array<char, kReadBytes> read_buffer = {};
};

/// Confined to the I/O thread, send() apart. At most one wait for readability is outstanding; the
/// server holds the connection exactly until it is closed.
class Connection final : public Stream, public std::enable_shared_from_this<Connection> {
 public:
  Connection(Shared& shared, tcp::socket socket)
      : shared_(shared), socket_(std::move(socket)), timer_(shared.io) {}

  void start(const StreamHandlerFactory& factory) {
    handler_ = factory(shared_from_this());
    read({});
  }
  void drain() {
    if (is_reading_) close();
  }

  void send(std::string bytes) override {
    asio::post(shared_.io, [self = shared_from_this(), bytes = std::move(bytes)]() mutable {
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
  bool is_reading_ = false;  // for the handler; else it has the turn
  bool has_ended_ = false;   // the client sends no more
  bool is_closed_ = false;
  std::string out_;
  std::size_t written_ = 0;
  asio::steady_timer timer_;
  std::uint64_t timer_number_ = 0;
};

void Connection::read(std::optional<milliseconds> within) {
  if (has_ended_ || shared_.is_draining) return close();
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
  is_reading_ = false;
  stop_timer();
  handler_->on_bytes({shared_.read_buffer.data(), size});
  watch();
}

/// The handler has the turn: has the client gone?
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
  // More is there. It stays in the socket, so nothing else can be learned from it.
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

/// One that has run out and waits for its callback cannot be cancelled: it finds its number gone.
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
  shared_.remove(this);
}

/// Invariant: open_ is the size of connections_.
class Server final : public StreamServer {
 public:
  Server(StreamServerOptions options, StreamHandlerFactory factory)
      : options_(std::move(options)), factory_(std::move(factory)) {}
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
  void admit(tcp::socket socket);
  void remove(Connection* connection);
  void drain(milliseconds grace);
  void finish();
  std::vector<std::shared_ptr<Connection>> all_connections() const;

  const StreamServerOptions options_;
  const StreamHandlerFactory factory_;
  asio::io_context io_{1};
  std::thread thread_;
  std::once_flag stopped_;
  // Written by the I/O thread, read by anyone. Relaxed: it is a number to look at, it orders
  // nothing.
  std::atomic<std::size_t> open_{0};

  // Touched only by the I/O thread once it runs.
  TcpListener listener_{io_, [this](tcp::socket socket) { admit(std::move(socket)); }};
  asio::steady_timer grace_timer_{io_};
  Shared shared_{.options = options_, .io = io_, .remove = [this](Connection* connection) {
                   remove(connection);
                 }};
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
};

void Server::admit(tcp::socket socket) {
  if (connections_.size() >= options_.max_connections) return;  // closed
  error_code ignored;
  // A client may wait for hours, so one whose machine has gone is noticed by TCP alone.
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto connection = std::make_shared<Connection>(shared_, std::move(socket));
  connections_.emplace(connection.get(), connection);
  open_.store(connections_.size(), std::memory_order_relaxed);
  connection->start(factory_);
}

void Server::remove(Connection* connection) {
  connections_.erase(connection);
  open_.store(connections_.size(), std::memory_order_relaxed);
  if (shared_.is_draining && connections_.empty()) io_.stop();
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
  shared_.is_draining = true;
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

/// A copy: closing a connection removes it.
std::vector<std::shared_ptr<Connection>> Server::all_connections() const {
  std::vector<std::shared_ptr<Connection>> all;
  all.reserve(connections_.size());
  for (const auto& [key, connection] : connections_) all.push_back(connection);
  return all;
}

}  // namespace

Result<std::unique_ptr<StreamServer>> StreamServer::start(StreamServerOptions options,
                                                          StreamHandlerFactory factory) {
  try {  // Asio and std::thread throw when the system is out of files or threads
    auto server = std::make_unique<Server>(std::move(options), std::move(factory));
    TRY(server->listen());
    server->run();
    return std::unique_ptr<StreamServer>(std::move(server));
  } catch (const std::exception& exception) {
    return Error{ErrorCode::unavailable, std::string("start server: ") + exception.what(), ""};
  }
}

}  // namespace detent::net
