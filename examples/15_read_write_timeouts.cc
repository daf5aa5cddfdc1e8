// Several timers in one object. A connection is closed if its peer sends no data for 30 s, or does
// not read the data sent to it within 10 s. Both timers are on one wheel. The program moves the
// clock itself. A server uses a detent::SystemClock.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "detent/clock.h"
#include "detent/member_timer.h"
#include "detent/queue_drive.h"
#include "detent/timer_wheel.h"

using namespace std::chrono_literals;

struct Connection {
  const char* peer;
  detent::MemberTimer<Connection> read_timeout{*this};
  detent::MemberTimer<Connection> write_timeout{*this};
};

int main() {
  detent::ManualClock clock;
  detent::TimerWheel wheel;
  detent::QueueDrive drive(wheel, clock);
  std::vector<std::string> closed;

  const auto close = [&](detent::Timer& timer) noexcept {
    Connection& connection = detent::MemberTimer<Connection>::owner_of(timer);
    const bool is_read = &timer == &connection.read_timeout;
    drive.cancel(connection.read_timeout);
    drive.cancel(connection.write_timeout);
    closed.push_back(std::string(connection.peer) + (is_read ? ": silent" : ": takes nothing"));
  };

  Connection healthy{.peer = "healthy"};
  Connection silent{.peer = "silent"};
  Connection stuck{.peer = "stuck"};
  for (auto* each : {&healthy, &silent, &stuck}) drive.schedule_after(each->read_timeout, 30s);
  for (int second = 0; second < 60; ++second) {
    drive.postpone_after(healthy.read_timeout, 30s);                  // it sends,
    drive.schedule_after(healthy.write_timeout, 10s);                 // is sent something,
    drive.cancel(healthy.write_timeout);                              // and takes it
    if (second < 10) drive.postpone_after(stuck.read_timeout, 30s);   // it sends,
    if (second == 5) drive.schedule_after(stuck.write_timeout, 10s);  // and takes nothing
    clock.advance(1s);
    drive.run_ready({.time = 2ms}, close);
  }

  for (const std::string& line : closed) std::printf("closed %s\n", line.c_str());
  const std::vector<std::string> expected{"stuck: takes nothing", "silent: silent"};
  return closed == expected && healthy.read_timeout.is_pending() ? 0 : 1;
}
