#include "bench/server/server_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace detent::bench {
namespace {

constexpr std::size_t kLeastFree = std::size_t{64} << 10;

}  // namespace

Socket::Socket(std::uint16_t port)
    : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), buffer_(2 * kLeastFree) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{.tv_sec = 90, .tv_usec = 0};
  const int on = 1;
  ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (::connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    ::close(descriptor_);
    throw ServerError(std::string("connect: ") + std::strerror(errno));
  }
}

Socket::~Socket() { ::close(descriptor_); }

void Socket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) throw ServerError(std::string("send: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string_view Socket::unread() const { return {buffer_.data() + begin_, end_ - begin_}; }

void Socket::fill() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (buffer_.size() - end_ < kLeastFree) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (buffer_.size() - end_ < kLeastFree) buffer_.resize(2 * buffer_.size());
  }
  const ssize_t got = ::recv(descriptor_, buffer_.data() + end_, buffer_.size() - end_, 0);
  if (got == 0) throw ServerError("the server closed the connection");
  if (got < 0) throw ServerError(std::string("recv: ") + std::strerror(errno));
  end_ += static_cast<std::size_t>(got);
}

std::string_view Socket::read_line() {
  std::size_t searched = 0;
  for (;;) {
    const std::size_t at = unread().find("\r\n", searched);
    if (at != std::string_view::npos) {
      const std::string_view line = unread().substr(0, at);
      begin_ += at + 2;
      return line;
    }
    searched = std::max<std::size_t>(unread().size(), 1) - 1;
    fill();
  }
}

std::string_view Socket::read(std::size_t count) {
  while (unread().size() < count) fill();
  const std::string_view bytes = unread().substr(0, count);
  begin_ += count;
  return bytes;
}

std::int64_t number_after(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  std::int64_t number = 0;
  if (at != std::string_view::npos) {
    text.remove_prefix(at + name.size());
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc{}) {
      return number;
    }
  }
  throw ServerError("no number after '" + std::string(name) +
                    "' in the answer: " + std::string(text.substr(0, 200)));
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

}  // namespace detent::bench
