// The service manager's end of NOTIFY_SOCKET, for tests: a datagram socket.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>

#include "detent/check.h"

namespace detent::server {

class NotifySocket {
 public:
  /// Listens on a unique name: an abstract name that the system chooses, or a path.
  NotifySocket() { bind_to(""); }
  explicit NotifySocket(const std::string& path) { bind_to(path); }
  ~NotifySocket() {
    ::close(socket_);
    if (name_.starts_with('/')) ::unlink(name_.c_str());
  }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  /// The value for NOTIFY_SOCKET.
  const std::string& name() const noexcept { return name_; }

  /// Returns the next datagram, or no value if it does not arrive in time.
  std::optional<std::string> next(std::chrono::milliseconds patience = std::chrono::seconds{30}) {
    pollfd readable{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, static_cast<int>(patience.count())) <= 0) return std::nullopt;
    std::array<char, 4096> datagram{};
    const ssize_t size = ::recv(socket_, datagram.data(), datagram.size(), 0);
    DETENT_CHECK(size >= 0);
    return std::string(datagram.data(), static_cast<std::size_t>(size));
  }
  /// Returns true if there is no unread datagram.
  bool is_silent() { return !next(std::chrono::milliseconds{0}); }

 private:
  void bind_to(const std::string& path) {
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    // Only the family: the system then chooses an abstract name (autobind, unix(7)).
    socklen_t size = sizeof(address.sun_family);
    if (!path.empty()) size = static_cast<socklen_t>(size + path.size() + 1);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    DETENT_CHECK(::bind(socket_, any, size) == 0);
    if (path.empty()) {
      size = sizeof(address);
      DETENT_CHECK(::getsockname(socket_, any, &size) == 0);
      const std::size_t length = size - offsetof(sockaddr_un, sun_path);
      name_ = "@" + std::string(&address.sun_path[1], length - 1);
    } else {
      name_ = path;
    }
  }

  int socket_ = -1;
  std::string name_;
};

}  // namespace detent::server
