// The client's end of a TCP connection to a server on this machine: blocking, buffered, and without
// a library. bench/server_*.cc implement the protocols on it. So all servers have the same client
// code, and no server has a slow client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace detent::bench {

/// A server did not start, did not answer, or reported a wrong count. The figure becomes an error.
class ServerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thread-compatible. Every call throws ServerError if the server closes the connection or does not
/// answer for 90 seconds.
class Socket {
 public:
  /// Connects to 127.0.0.1.
  explicit Socket(std::uint16_t port);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  void send(std::string_view bytes);

  /// Reads up to the next CR LF. Returns the line without it; valid until the next read.
  std::string_view read_line();
  /// Reads `count` bytes and returns them; valid until the next read.
  std::string_view read(std::size_t count);

  int descriptor() const { return descriptor_; }

 private:
  std::string_view unread() const;
  void fill();

  int descriptor_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // unread bytes: buffer_[begin_, end_)
  std::size_t end_ = 0;
};

/// The number that follows the first `name` in `text`. Throws ServerError if it is missing.
std::int64_t number_after(std::string_view text, std::string_view name);

/// How often `part` occurs in `text`.
std::size_t count_of(std::string_view text, std::string_view part);

}  // namespace detent::bench
