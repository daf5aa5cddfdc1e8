// A timing wheel alone: your own objects are the timers, and you tell the wheel the time. Here ten
// connections time out unless they have traffic, in an hour of simulated seconds.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "detent/timer_wheel.h"

namespace {

constexpr detent::Tick kIdleSeconds = 300;

struct Connection : detent::Timer {
  int number = 0;
};

}  // namespace

int main() {
  detent::TimerWheel wheel;  // one tick is one second here; you choose its length
  std::vector<Connection> connections(10);
  for (int i = 0; i < 10; ++i) {
    connections[static_cast<std::size_t>(i)].number = i;
    wheel.schedule(connections[static_cast<std::size_t>(i)], kIdleSeconds);
  }

  int timed_out = 0;
  for (detent::Tick now = 60; now <= 3600; now += 60) {
    // Connection 7 has traffic every minute. Moving its time-out costs one store.
    wheel.postpone(connections[7], now + kIdleSeconds);
    wheel.advance(now, [&](detent::Timer& timer) {
      std::printf("%4llu s: connection %d timed out\n", static_cast<unsigned long long>(now),
                  static_cast<Connection&>(timer).number);
      ++timed_out;
    });
  }
  std::printf("%d timed out, %zu still open\n", timed_out, wheel.size());
  return timed_out == 9 && connections[7].is_pending() ? EXIT_SUCCESS : EXIT_FAILURE;
}
