// A blocking TCP socket for tests that must misbehave: send half a request, reset the connection,
// or read nothing.
//
// Tests wait by reading, never by sleeping. A read that receives nothing for 30 s returns the bytes
// that it has. So with a broken server, a test fails instead of hanging. Loopback only.
// Thread-compatible.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace detent::test {

class RawSocket {
 public:
  /// Connects to 127.0.0.1. If that fails, is_open() is false. `receive_buffer_bytes` > 0 asks the
  /// system for a receive buffer of about this size.
  explicit RawSocket(std::uint16_t port, int receive_buffer_bytes = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval give_up{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &give_up, sizeof give_up);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &give_up, sizeof give_up);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (receive_buffer_bytes > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) close();
  }
  ~RawSocket() { close(); }
  RawSocket(RawSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), input_(std::move(other.input_)) {}
  RawSocket& operator=(RawSocket&&) = delete;

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  /// Sends all bytes. Returns false if the other side has closed, or accepts nothing for 30 s.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// Reads one HTTP response: its head with the empty line, and a body of Content-Length bytes. If
  /// the connection ends earlier, returns the bytes that arrived.
  std::string read_response() {
    std::size_t head_end = 0;
    while ((head_end = input_.find("\r\n\r\n")) == std::string::npos) {
      if (!read_some()) return take(input_.size());
    }
    head_end += 4;
    const std::size_t length_at = input_.substr(0, head_end).find("Content-Length: ");
    std::size_t size = head_end;
    if (length_at != std::string::npos) {
      size += std::strtoul(input_.c_str() + length_at + 16, nullptr, 10);
    }
    while (input_.size() < size && read_some()) {
    }
    return take(size);
  }

  /// Reads exactly `size` bytes, or fewer if the connection ends earlier.
  std::string read(std::size_t size) {
    while (input_.size() < size && read_some()) {
    }
    return take(size);
  }

  /// Reads up to and including the end of a chunked body, or less if the connection ends earlier.
  std::string read_to_last_chunk() {
    constexpr std::string_view kEnd = "\r\n0\r\n\r\n";
    std::size_t at = 0;
    while ((at = input_.find(kEnd)) == std::string::npos) {
      if (!read_some()) return take(input_.size());
    }
    return take(at + kEnd.size());
  }

  /// Reads until the other side closes.
  std::string read_to_end() {
    while (read_some()) {
    }
    return take(input_.size());
  }

  /// True if there are bytes to read, or if the connection has ended. Does not block.
  bool has_input() const {
    pollfd now{.fd = fd_, .events = POLLIN, .revents = 0};
    return !input_.empty() || ::poll(&now, 1, 0) == 1;
  }

  /// Tells why a read returned too few bytes: the connection was reset, or nothing arrived for 30
  /// s.
  bool was_reset() const { return was_reset_; }
  bool gave_up() const { return gave_up_; }

  /// Blocks until the other side resets the connection, and returns true. Returns false after 30 s.
  /// Reads nothing.
  bool await_reset() const {
    pollfd waiting{.fd = fd_, .events = 0, .revents = 0};
    return ::poll(&waiting, 1, 30'000) == 1 && (waiting.revents & POLLERR) != 0;
  }

  /// Ends the sending direction. Reading is still possible.
  void shut_down_sending() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  /// Closes with a reset instead of a normal end.
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }

 private:
  bool read_some() {
    std::array<char, 16 * 1024> buffer{};
    const ssize_t size = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == ECONNRESET) was_reset_ = true;
    if (size < 0 && errno == EAGAIN) gave_up_ = true;
    if (size <= 0) return false;
    input_.append(buffer.data(), static_cast<std::size_t>(size));
    return true;
  }

  std::string take(std::size_t size) {
    std::string taken = input_.substr(0, size);
    input_.erase(0, size);
    return taken;
  }

  int fd_;
  std::string input_;
  bool was_reset_ = false;
  bool gave_up_ = false;
};

}  // namespace detent::test
