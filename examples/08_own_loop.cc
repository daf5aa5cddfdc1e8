// Timers in your own loop, here a game's: 300 creatures wake at the same moment, and each takes 100
// us to wake. Each frame spends at most 2 ms on this, so no frame is late. The loop sleeps while no
// timer is due. The program moves the clock itself. A game uses a detent::SystemClock.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "detent/clock.h"
#include "detent/queue_drive.h"
#include "detent/timer_wheel.h"

using namespace std::chrono_literals;

struct Creature : detent::Timer {
  int naps = 2;
};

int main() {
  detent::ManualClock clock;
  detent::TimerWheel wheel;
  detent::QueueDrive drive(wheel, clock);

  std::vector<Creature> creatures(300);
  for (Creature& creature : creatures) drive.schedule_after(creature, 30s);

  int frames = 0;
  int woken = 0;
  std::chrono::nanoseconds longest{};
  while (!wheel.empty()) {
    clock.advance(std::max<std::chrono::nanoseconds>(16ms, *drive.time_to_next()));  // sleeps
    const detent::MonotonicTime begin = clock.now();
    drive.run_ready({.count = 1'000, .time = 2ms}, [&](detent::Timer& timer) noexcept {
      clock.advance(100us);  // the work
      ++woken;
      auto& creature = static_cast<Creature&>(timer);
      if (--creature.naps > 0) drive.schedule_after(creature, 30s);
    });
    longest = std::max(longest, clock.now() - begin);
    ++frames;
  }
  std::printf("%d woken in %d frames, none took longer than %lld us\n", woken, frames,
              static_cast<long long>(longest / 1us));
  return woken == 600 && frames < 100 && longest <= 2ms ? 0 : 1;
}
