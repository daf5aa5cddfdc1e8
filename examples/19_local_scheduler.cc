// Jobs in your own epoll loop, for Linux, without a second thread: a LocalScheduler, and a timerfd
// that wakes the loop. A server closes silent connections and sends four heartbeats.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "detent/local_scheduler.h"

using namespace std::chrono_literals;

struct Connection {
  int sockets[2] = {};  // our end, the peer's end
  detent::TimerHandle silence;
};

// A new time also makes the timerfd unreadable, so the loop does not have to read it.
static void set_alarm(int alarm, detent::MonotonicTime at) {
  const auto second = std::chrono::floor<std::chrono::seconds>(at);
  const itimerspec spec{{}, {second.time_since_epoch().count(), (at - second).count()}};
  timerfd_settime(alarm, TFD_TIMER_ABSTIME, &spec, nullptr);
}

int main() {
  detent::LocalScheduler timers;
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const int alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, alarm, &event);

  int closed = 0;
  int beats = 0;
  timers.schedule_every({.period = 5ms, .count = 4}, [&beats] { ++beats; }).release();
  Connection connections[3];
  for (Connection& each : connections) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, each.sockets) != 0) return EXIT_FAILURE;
    if (write(each.sockets[1], "hello", 5) != 5) return EXIT_FAILURE;
    event.data.ptr = &each;
    epoll_ctl(epoll, EPOLL_CTL_ADD, each.sockets[0], &event);
    each.silence = timers.schedule_after(20ms, [&each, &closed] {
      close(each.sockets[0]);
      ++closed;
    });
  }
  while (const auto at = timers.next_wakeup()) {  // a server would go on without timers
    set_alarm(alarm, *at);
    const int events = epoll_wait(epoll, &event, 1, -1);
    timers.begin_turn();
    if (events == 1 && event.data.ptr != nullptr) {
      auto& connection = *static_cast<Connection*>(event.data.ptr);
      char byte = 0;
      if (read(connection.sockets[0], &byte, 1) == 1) connection.silence.expires_after(20ms);
    }
    timers.run_ready({.time = 2ms});
  }
  std::printf("%d connections closed after 20 ms of silence, %d beats\n", closed, beats);
  return closed == 3 && beats == 4 ? EXIT_SUCCESS : EXIT_FAILURE;
}
