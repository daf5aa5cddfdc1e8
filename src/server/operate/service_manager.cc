#include "server/operate/service_manager.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/log/log.h"

namespace detent::server {

namespace {

using std::chrono::microseconds;

/// Returns a socket that is connected to `name`, or -1 on an error. '@' represents the zero byte at
/// the start of an abstract name (unix(7)).
int connected_to(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof(address.sun_path)) return -1;
  if (!name.starts_with('/') && !name.starts_with('@')) return -1;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name.starts_with('@')) address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const int opened = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (opened < 0) return -1;
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  // If this fails, a full socket only makes a stop wait longer.
  (void)::setsockopt(opened, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  if (::connect(opened, reinterpret_cast<const sockaddr*>(&address), size) == 0) return opened;
  ::close(opened);
  return -1;
}

std::optional<std::int64_t> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const char* const end = text + std::strlen(text);
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc{} || stop != end || number <= 0) return std::nullopt;
  return number;
}

}  // namespace

ServiceManager::ServiceManager() {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  if (name == nullptr) return;
  socket_ = connected_to(name);
  if (socket_ < 0) {
    log_warning("cannot send messages to the service manager", {{"NOTIFY_SOCKET", name}});
    return;
  }
  const bool is_for_another =
      std::getenv("WATCHDOG_PID") != nullptr && number_in("WATCHDOG_PID") != ::getpid();
  if (const auto length = number_in("WATCHDOG_USEC"); length && !is_for_another) {
    watchdog_ = microseconds{*length};
  }
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

void ServiceManager::reloading(MonotonicTime now) const {
  const auto since_boot = std::chrono::duration_cast<microseconds>(now.time_since_epoch());
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(since_boot.count()), IfFull::wait);
}

void ServiceManager::send(std::string_view state, IfFull if_full) const {
  if (socket_ < 0) return;
  const int flags = MSG_NOSIGNAL | (if_full == IfFull::drop ? MSG_DONTWAIT : 0);
  // If the manager does not read, only a line of its log is missing.
  (void)::send(socket_, state.data(), state.size(), flags);
}

}  // namespace detent::server
