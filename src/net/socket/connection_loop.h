// The I/O thread of a server, its listening socket and its connections. The HTTP server and the
// byte stream server share this code.
// Internal to this folder, and included by its .cc files only: it shows Boost.Asio. The rule "on
// the I/O thread" applies after run() was called.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "detent/check.h"
#include "net/address/address_counts.h"
#include "net/socket/silent_connections.h"
#include "net/socket/tcp_listener.h"

namespace detent::net {

/// `Connection` has drain(), which ends the connection once it has no work, and close(), which ends
/// it immediately. Both finally remove it from the loop. has_input() returns true if unread bytes
/// wait in its socket. Invariants: open_ is the size of connections_; every element of silent_ is
/// in connections_.
template <class Connection>
class ConnectionLoop {
 public:
  /// `admit` gets each new socket, on the I/O thread.
  explicit ConnectionLoop(TcpListener::Admit admit) : listener_(io_, std::move(admit)) {}
  ~ConnectionLoop() { stop(std::chrono::milliseconds{0}); }
  ConnectionLoop(const ConnectionLoop&) = delete;
  ConnectionLoop& operator=(const ConnectionLoop&) = delete;

  // From any thread.

  /// Before run(). Errors: as TcpListener::listen().
  Result<void> listen(const std::string& address, std::uint16_t port) {
    return listener_.listen(address, port);
  }
  void run() {
    thread_ = std::thread([this] { io_.run(); });
  }
  std::uint16_t port() const noexcept { return listener_.port(); }
  std::size_t size() const noexcept { return open_.load(std::memory_order_relaxed); }
  /// Accepts no more connections, waits up to `grace` until the connections have ended, cuts the
  /// remaining connections, and joins the thread. Idempotent. Do not call it from the I/O thread.
  void stop(std::chrono::milliseconds grace) {
    std::call_once(stopped_, [this, grace] {
      if (!thread_.joinable()) return;  // run() was not called
      DETENT_CHECK(std::this_thread::get_id() != thread_.get_id());
      boost::asio::post(io_, [this, grace] { drain(grace); });
      thread_.join();
    });
  }

  // On the I/O thread.

  boost::asio::io_context& io() noexcept { return io_; }
  /// True while the server is stopping. The reference stays valid.
  const bool& is_draining() const noexcept { return is_draining_; }
  /// The number of connections of each address. Gives tickets for add().
  AddressCounts& addresses() noexcept { return addresses_; }
  void add(const std::shared_ptr<Connection>& connection, AddressCounts::Ticket ticket) {
    const auto place = silent_.add(connection.get(), ticket.address());
    connections_.emplace(connection.get(), Entry{connection, std::move(ticket), place});
    open_.store(connections_.size(), std::memory_order_relaxed);
  }
  void remove(Connection* connection) {
    heard(connection);
    connections_.erase(connection);
    open_.store(connections_.size(), std::memory_order_relaxed);
    if (is_draining_ && connections_.empty()) io_.stop();
  }

  /// Called when the connection has sent bytes, or is answered although it has sent none. From then
  /// on close_silent() does not close it.
  void heard(Connection* connection) {
    const auto entry = connections_.find(connection);
    if (entry != connections_.end()) silent_.remove(entry->second.silent);
  }
  /// Closes the connection that has been silent for longest. Returns false if there is no silent
  /// connection.
  bool close_silent() {
    return close_first([this] { return silent_.oldest(); });
  }
  /// As close_silent(), but only among the connections of one address.
  bool close_silent_of(const AddressCounts::Ticket& ticket) {
    return close_first([this, &ticket] { return silent_.oldest_of(ticket.address()); });
  }

 private:
  /// Closes the first connection from `next` that has no unread bytes.
  template <class Next>
  bool close_first(const Next& next) {
    while (Connection* const connection = next()) {
      if (!connection->has_input()) {
        connection->close();
        return true;
      }
      heard(connection);  // its bytes are read in this round of the loop
    }
    return false;
  }
  void drain(std::chrono::milliseconds grace) {
    is_draining_ = true;
    listener_.close();
    for (const auto& connection : all()) connection->drain();
    if (connections_.empty() || grace <= std::chrono::milliseconds{0}) return finish();
    grace_timer_.expires_after(grace);
    grace_timer_.async_wait([this](boost::system::error_code) { finish(); });
  }
  /// Cuts the remaining connections and ends the I/O thread.
  void finish() {
    for (const auto& connection : all()) connection->close();
    io_.stop();
  }
  /// Returns a copy of the list, because closing a connection removes it from connections_.
  std::vector<std::shared_ptr<Connection>> all() const {
    std::vector<std::shared_ptr<Connection>> all;
    all.reserve(connections_.size());
    for (const auto& [key, entry] : connections_) all.push_back(entry.connection);
    return all;
  }

  struct Entry {
    std::shared_ptr<Connection> connection;
    AddressCounts::Ticket ticket;
    typename SilentConnections<Connection>::Place silent;
  };

  boost::asio::io_context io_{1};
  std::thread thread_;
  std::once_flag stopped_;
  // Written by the I/O thread, read by any thread. Relaxed, because it orders no other data.
  // no other data.
  std::atomic<std::size_t> open_{0};

  // Used only by the I/O thread once it runs.
  TcpListener listener_;
  boost::asio::steady_timer grace_timer_{io_};
  bool is_draining_ = false;
  AddressCounts addresses_;
  SilentConnections<Connection> silent_;
  std::unordered_map<Connection*, Entry> connections_;
};

}  // namespace detent::net
