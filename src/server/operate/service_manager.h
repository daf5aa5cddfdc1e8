// Messages to systemd about the state of the server, as datagrams of sd_notify(3). They need no
// library. Also answers whether systemd expects regular messages that the server works (its
// watchdog).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "detent/clock.h"

namespace detent::server {

/// Thread-safe. Without a service manager every call does nothing. A message that cannot be sent is
/// dropped: works() drops it immediately, all other messages after a second. The time-outs of the
/// manager handle lost messages.
class ServiceManager {
 public:
  /// Finds the manager with NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. Logs a warning if the
  /// name of the socket is invalid.
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  void ready() const { send("READY=1", IfFull::wait); }
  /// `now` is of CLOCK_MONOTONIC. Call ready() afterwards.
  void reloading(MonotonicTime now) const;
  void stopping() const { send("STOPPING=1", IfFull::wait); }
  void works() const { send("WATCHDOG=1", IfFull::drop); }

  /// If works() is not called for this long, the manager kills the server. No value: there is no
  /// watchdog.
  std::optional<std::chrono::microseconds> watchdog() const noexcept { return watchdog_; }

 private:
  /// The action if the manager has not yet read earlier messages.
  enum class IfFull : std::uint8_t { drop, wait };
  void send(std::string_view state, IfFull if_full) const;

  // Constant after construction.
  int socket_ = -1;  // connected to the manager's; -1: there is no manager
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace detent::server
