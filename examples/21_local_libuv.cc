// A LocalScheduler in a libuv loop. One uv_timer_t stands for all timers of the scheduler. A
// uv_prepare_t sets it before the loop sleeps, so timers of every callback are seen.
#include <uv.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "detent/local_scheduler.h"

using namespace std::chrono_literals;

namespace {

/// Drives a LocalScheduler from a loop, until no timer is left.
class UvDrive {
 public:
  UvDrive(uv_loop_t* loop, detent::LocalScheduler& timers) : timers_(timers) {
    uv_timer_init(loop, &alarm_);
    uv_prepare_init(loop, &prepare_);
    alarm_.data = prepare_.data = this;
    uv_prepare_start(&prepare_,
                     [](uv_prepare_t* prepare) { static_cast<UvDrive*>(prepare->data)->aim(); });
  }

 private:
  /// libuv sleeps for whole milliseconds, so the time is rounded up.
  void aim() {
    const auto wait = timers_.time_to_next();
    if (!wait) {
      uv_timer_stop(&alarm_);
      uv_close(reinterpret_cast<uv_handle_t*>(&alarm_), nullptr);
      uv_close(reinterpret_cast<uv_handle_t*>(&prepare_), nullptr);
      return;
    }
    uv_update_time(alarm_.loop);
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(*wait).count();
    uv_timer_start(
        &alarm_,
        [](uv_timer_t* alarm) {
          static_cast<UvDrive*>(alarm->data)->timers_.run_ready({.time = 2ms});
        },
        static_cast<std::uint64_t>(milliseconds), 0);
  }

  detent::LocalScheduler& timers_;
  uv_timer_t alarm_{};
  uv_prepare_t prepare_{};
};

}  // namespace

int main() {
  uv_loop_t loop;
  uv_loop_init(&loop);
  detent::LocalScheduler timers;
  int beats = 0;
  timers.schedule_every({.period = 2ms, .count = 5}, [&beats] { ++beats; }).release();
  detent::TimerHandle cancelled = timers.schedule_after(5s, [&beats] { beats = 100; });
  timers.schedule_after(3ms, [&cancelled] { cancelled.cancel(); }).release();
  UvDrive drive(&loop, timers);
  uv_run(&loop, UV_RUN_DEFAULT);  // until no timer is left
  const bool closed = uv_loop_close(&loop) == 0;
  std::printf("%d beats in a libuv loop\n", beats);
  return beats == 5 && closed ? EXIT_SUCCESS : EXIT_FAILURE;
}
