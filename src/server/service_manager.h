// What systemd is told of the server, in the datagrams of sd_notify(3); no library is needed for
// them. Also whether it wants to hear, again and again, that the server works (its watchdog).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "detent/clock.h"

namespace detent::server {

/// Thread-safe. Without a service manager every call does nothing. What cannot be sent is dropped,
/// works() at once and all else after a second: the manager's own time-outs deal with it.
class ServiceManager {
 public:
  /// Finds the manager by NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. Logs a warning when the
  /// socket's name is none that can be sent to.
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  void ready() const { send("READY=1", IfFull::wait); }
  /// `now` is of CLOCK_MONOTONIC. To be followed by ready().
  void reloading(MonotonicTime now) const;
  void stopping() const { send("STOPPING=1", IfFull::wait); }
  void works() const { send("WATCHDOG=1", IfFull::drop); }

  /// The server is killed when it has not said works() for so long; none: nobody waits for it.
  std::optional<std::chrono::microseconds> watchdog() const noexcept { return watchdog_; }

 private:
  /// What is done while the manager has not read what it was told before.
  enum class IfFull : std::uint8_t { drop, wait };
  void send(std::string_view state, IfFull if_full) const;

  // Constant after construction.
  int socket_ = -1;  // connected to the manager's; -1: there is none
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace detent::server
