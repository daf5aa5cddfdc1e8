// Closes connections that had no traffic for a minute. Reporting traffic costs one store, so an I/O
// loop can do it for every packet. Here ten thousand connections get packets. The program moves the
// clock itself, so a minute passes at once. Without `.clock`, the scheduler uses the system clock.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "detent/idle_timeouts.h"
#include "detent/scheduler.h"

using namespace std::chrono_literals;

int main() {
  constexpr std::uint64_t kConnections = 10'000;
  detent::ManualClock clock;
  detent::Scheduler scheduler({.clock = &clock});
  const auto pass = [&](std::chrono::seconds time) {
    clock.advance(time);
    clock.await_waiters(1);  // the scheduler sleeps: all due work is done
  };

  std::vector<std::uint64_t> closed;
  detent::IdleTimeouts idle(scheduler, {.timeout = 60s, .on_idle = [&](std::uint64_t socket) {
                                          closed.push_back(socket);
                                        }});

  std::vector<detent::IdleTimeouts::Connection> connections;
  for (std::uint64_t socket = 0; socket < kConnections; ++socket) {
    connections.push_back(idle.add(socket));
  }
  const auto probe = idle.add(kConnections, 5s);  // not logged in: has a shorter time-out

  // Ten minutes with a packet per second on each connection. One connection in a hundred gets no
  // packets in the second half.
  for (int second = 0; second < 600; ++second) {
    const detent::MonotonicTime now = clock.now();  // a loop reads the clock once per round
    for (std::uint64_t socket = 0; socket < kConnections; ++socket) {
      if (second >= 300 && socket % 100 == 0) continue;
      connections[socket].refresh(now);
    }
    pass(1s);
  }
  std::printf("closed %zu connections, with %llu wake-ups\n", closed.size(),
              static_cast<unsigned long long>(scheduler.stats().runs));
  const bool only_the_silent = closed.size() == 1 + kConnections / 100;
  const bool probe_first = closed.front() == kConnections;

  connections[1].remove();  // closed by the peer: it is not reported
  pass(60s);
  const bool all_but_one = closed.size() == kConnections;
  return only_the_silent && probe_first && all_but_one ? EXIT_SUCCESS : EXIT_FAILURE;
}
