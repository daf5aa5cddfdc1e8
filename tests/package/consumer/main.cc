// A first program of a user: one timer on a wheel, and one timer on the threaded scheduler. The
// exit status is 0 if both fired.
#include <chrono>
#include <semaphore>

#include "detent/scheduler.h"
#include "detent/timer_wheel.h"

#if defined(DETENT_IS_A_PART) && __has_include("base/result.h")
#error "the private headers of Detent are on the include path"
#endif

int main() {
  detent::TimerWheel wheel;
  detent::Timer timer;
  int fired = 0;
  wheel.schedule(timer, 10);
  wheel.advance(9, [&](detent::Timer&) noexcept { fired += 100; });
  wheel.advance(10, [&](detent::Timer&) noexcept { fired += 1; });

  detent::Scheduler scheduler;
  std::binary_semaphore ran{0};
  auto handle = scheduler.schedule_after(std::chrono::milliseconds(1), [&] { ran.release(); });
  ran.acquire();
  return fired == 1 ? 0 : 1;
}
