// Timers in your own epoll loop, for Linux: connections are closed after 40 ms of silence. The loop
// sleeps in epoll_wait. A timerfd wakes it when the drive has work.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdio>

#include "detent/queue_drive.h"
#include "detent/timer_wheel.h"

using namespace std::chrono_literals;

struct Connection : detent::Timer {
  int sockets[2] = {};  // our end, the peer's end
  detent::MonotonicTime heard;
};

// A new time also makes the timerfd unreadable, so the loop does not have to read it. Zero: no
// time.
static void set_alarm(int alarm, detent::MonotonicTime at) {
  const auto second = std::chrono::floor<std::chrono::seconds>(at);
  const itimerspec spec{{}, {second.time_since_epoch().count(), (at - second).count()}};
  timerfd_settime(alarm, TFD_TIMER_ABSTIME, &spec, nullptr);
}

int main() {
  detent::TimerWheel wheel;
  detent::SystemClock clock;
  detent::QueueDrive drive(wheel, clock);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const int alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, alarm, &event);
  Connection connections[3];
  for (Connection& each : connections) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, each.sockets) != 0) return 1;
    if (write(each.sockets[1], "hello", 5) != 5) return 1;
    event.data.ptr = &each;
    epoll_ctl(epoll, EPOLL_CTL_ADD, each.sockets[0], &event);
    drive.schedule_after(each, 40ms);
  }
  bool was_early = false;
  while (!wheel.empty()) {
    set_alarm(alarm, drive.next_wakeup().value_or(detent::MonotonicTime{}));
    if (epoll_wait(epoll, &event, 1, -1) == 1 && event.data.ptr != nullptr) {
      auto& connection = *static_cast<Connection*>(event.data.ptr);
      connection.heard = clock.now();
      char byte = 0;
      if (read(connection.sockets[0], &byte, 1) == 1) drive.postpone_after(connection, 40ms);
    }
    drive.run_ready({.time = 2ms}, [&](detent::Timer& timer) noexcept {
      auto& connection = static_cast<Connection&>(timer);
      was_early |= clock.now() < connection.heard + 40ms;
      close(connection.sockets[0]);
      std::puts("closed after 40 ms of silence");
    });
  }
  return was_early ? 1 : 0;
}
