// Uses the runtime in a shared library. The other sources of the library run when it is loaded.
#include <chrono>
#include <semaphore>

#include "detent/check.h"
#include "detent/scheduler.h"

bool fires_in_a_plugin() {
  detent::Scheduler scheduler;
  std::binary_semaphore ran{0};
  auto handle = scheduler.schedule_after(std::chrono::milliseconds(1), [&] { ran.release(); });
  ran.acquire();
  DETENT_CHECK(handle.cancel() != detent::CancelResult::cancelled);
  return true;
}
