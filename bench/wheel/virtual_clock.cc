#include "bench/wheel/virtual_clock.h"

#include <dlfcn.h>
#include <time.h>

#include <cstdint>

#include "detent/check.h"

namespace detent::bench {
namespace {

constexpr std::int64_t kNanosecondsPerTick = 1'000'000;
constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::int64_t kStart =
    VirtualClock::kStartSeconds * kNanosecondsPerSecond + kNanosecondsPerTick / 2;
constexpr std::int64_t kRealTime = -1;

// The time of the clocks, in nanoseconds. It is global, because clock_gettime has no object.
constinit std::int64_t shown = kRealTime;

bool is_virtual(clockid_t clock) {
  return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_REALTIME ||
         clock == CLOCK_REALTIME_COARSE;
}

int real_clock_gettime(clockid_t clock, timespec* time) {
  using Function = int (*)(clockid_t, timespec*);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "clock_gettime"));
  return next(clock, time);
}

}  // namespace

VirtualClock::VirtualClock() {
  DETENT_CHECK(shown == kRealTime);
  set(0);
}

VirtualClock::~VirtualClock() { shown = kRealTime; }

void VirtualClock::set(Tick now) {
  now_ = now;
  shown = kStart + static_cast<std::int64_t>(now) * kNanosecondsPerTick;
}

}  // namespace detent::bench

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  using namespace detent::bench;
  if (shown == kRealTime || !is_virtual(clock)) return real_clock_gettime(clock, time);
  time->tv_sec = shown / kNanosecondsPerSecond;
  time->tv_nsec = shown % kNanosecondsPerSecond;
  return 0;
}
