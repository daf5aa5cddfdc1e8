// HTTP/1.1 with keep-alive on a Socket, one request at a time. Implemented here without a library,
// like the other protocols of the benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/server/server_socket.h"

namespace detent::bench {

/// Thread-compatible. Every call throws ServerError if the server does not answer.
class HttpSocket {
 public:
  explicit HttpSocket(std::uint16_t port) : socket_(port) {}

  /// Becomes readable when an answer arrives.
  int descriptor() const { return socket_.descriptor(); }

  void send_post(std::string_view path, std::string_view body);
  void send_get(std::string_view path);
  /// Returns the body, valid until the next call. Throws ServerError unless the status is 2xx.
  std::string_view receive();

  std::string_view post(std::string_view path, std::string_view body) {
    send_post(path, body);
    return receive();
  }
  std::string_view get(std::string_view path) {
    send_get(path);
    return receive();
  }

 private:
  Socket socket_;
  std::string request_;
};

/// Returns the text between the first `name` at or after `at` and the next quote, and moves `at`
/// behind it. If `name` is not found, returns "" and sets `at` to npos.
std::string_view next_string(std::string_view text, std::string_view name, std::size_t& at);

}  // namespace detent::bench
