// The adapters of detent::LocalScheduler and of a bare DenseWheel for runtime_bench. Both are in a
// loop that sleeps on a timerfd. The DenseWheel shows how much the jobs and handles of the
// LocalScheduler cost.
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bench/runtime/runtime_workloads.h"
#include "detent/check.h"
#include "detent/clock.h"
#include "detent/dense_wheel.h"
#include "detent/internal/tick_scale.h"
#include "detent/local_scheduler.h"

namespace detent::bench {
namespace {

constexpr std::chrono::nanoseconds kResolution = std::chrono::microseconds{10};

/// A loop that only sleeps until an instant. As a Scheduler, it asks for the finest timer slack.
class SleepingLoop {
 public:
  SleepingLoop() : slack_before_(prctl(PR_GET_TIMERSLACK)) {
    prctl(PR_SET_TIMERSLACK, 1);
    DETENT_CHECK(timer_ >= 0);
  }
  ~SleepingLoop() {
    close(timer_);
    prctl(PR_SET_TIMERSLACK, slack_before_);
  }
  SleepingLoop(const SleepingLoop&) = delete;
  SleepingLoop& operator=(const SleepingLoop&) = delete;

  void sleep_until(MonotonicTime at) const {
    const std::chrono::nanoseconds since = at.time_since_epoch();
    const itimerspec until{
        .it_value = {.tv_sec = static_cast<time_t>(since / std::chrono::seconds{1}),
                     .tv_nsec = (since % std::chrono::seconds{1}).count()}};
    DETENT_CHECK(timerfd_settime(timer_, TFD_TIMER_ABSTIME, &until, nullptr) == 0);
    std::uint64_t times = 0;
    DETENT_CHECK(read(timer_, &times, sizeof(times)) == sizeof(times));
  }

 private:
  const int slack_before_;
  const int timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
};

template <bool kSpins>
class LocalRuntime {
 public:
  LocalRuntime(std::uint32_t timers, std::uint32_t, OnFire on_fire)
      : on_fire_(std::move(on_fire)), scheduler_(options()), timers_(timers) {}

  void schedule(std::uint32_t timer, std::chrono::microseconds delay) {
    const auto job = [this, timer] { on_fire_(timer); };
    // Delays count from the beginning of the turn, but a timer of `serve` must not be early.
    timers_[timer] = is_serving_ ? scheduler_.schedule_at(scheduler_.clock().now() + delay, job)
                                 : scheduler_.schedule_after(delay, job);
  }
  void cancel(std::uint32_t timer) { timers_[timer].cancel(); }
  void refresh(std::uint32_t timer, std::chrono::microseconds delay) {
    timers_[timer].expires_after(delay);
  }

  template <class Step>
  void run(Step step) {
    for (bool more = true; more;) {
      scheduler_.begin_turn();
      more = step(0);
      scheduler_.run_ready();
    }
  }
  void settle() {}

  template <class Start>
  void serve(Start start) {
    const SleepingLoop loop;
    is_serving_ = true;
    start();
    while (!finished_) {
      loop.sleep_until(scheduler_.next_wakeup().value());
      scheduler_.run_ready();
    }
  }
  void finish() { finished_ = true; }

  std::uint64_t pending() const { return scheduler_.stats().pending; }

 private:
  static LocalSchedulerOptions options() {
    LocalSchedulerOptions options;
    if (kSpins) {
      options.resolution = std::chrono::microseconds{1};
      options.spin = std::chrono::microseconds{50};
    }
    return options;
  }

  OnFire on_fire_;
  bool finished_ = false;
  bool is_serving_ = false;
  LocalScheduler scheduler_;
  std::vector<TimerHandle> timers_;  // destroyed first, which cancels them
};

class DenseWheelRuntime {
 public:
  DenseWheelRuntime(std::uint32_t, std::uint32_t, OnFire on_fire)
      : on_fire_(std::move(on_fire)), scale_(clock_.now(), kResolution), now_(clock_.now()) {}

  void schedule(std::uint32_t timer, std::chrono::microseconds delay) {
    if (is_serving_) now_ = clock_.now();  // its timers must not be early
    wheel_.schedule(timer, scale_.tick_at_or_after(now_ + delay));
  }
  void cancel(std::uint32_t timer) { wheel_.cancel(timer); }
  void refresh(std::uint32_t timer, std::chrono::microseconds delay) {
    if (is_serving_) now_ = clock_.now();
    wheel_.postpone(timer, scale_.tick_at_or_after(now_ + delay));
  }

  template <class Step>
  void run(Step step) {
    for (bool more = true; more;) {
      now_ = clock_.now();
      more = step(0);
      advance();
    }
  }
  void settle() {}

  template <class Start>
  void serve(Start start) {
    const SleepingLoop loop;
    is_serving_ = true;
    start();
    while (!finished_) {
      loop.sleep_until(scale_.time_of(wheel_.next_wakeup().value()));
      now_ = clock_.now();
      advance();
    }
  }
  void finish() { finished_ = true; }

  std::uint64_t pending() const { return wheel_.size(); }

 private:
  void advance() {
    wheel_.advance(scale_.tick_at_or_before(now_),
                   [this](std::uint32_t timer) { on_fire_(timer); });
  }

  OnFire on_fire_;
  bool finished_ = false;
  bool is_serving_ = false;
  SystemClock clock_;
  internal::TickScale scale_;
  MonotonicTime now_;
  DenseWheel wheel_;
};

constexpr TakesPart kAlone{.refresh = true, .lateness = true, .threads = false};

}  // namespace

std::unique_ptr<RuntimePeer> local_runtime() {
  return std::make_unique<InProcess<LocalRuntime<false>>>(
      RuntimeCard{.name = "LocalScheduler",
                  .note = "1 thread: a turn every 64 pairs; sleeps on a timerfd",
                  .takes_part = kAlone});
}

std::unique_ptr<RuntimePeer> local_runtime_that_spins() {
  return std::make_unique<InProcess<LocalRuntime<true>>>(
      RuntimeCard{.name = "Local, spin",
                  .note = "a LocalScheduler with .resolution = 1us, .spin = 50us",
                  .takes_part = kAlone});
}

std::unique_ptr<RuntimePeer> dense_wheel_runtime() {
  return std::make_unique<InProcess<DenseWheelRuntime>>(
      RuntimeCard{.name = "DenseWheel",
                  .note = "1 thread: bare, without jobs and handles; sleeps on a timerfd",
                  .takes_part = kAlone});
}

}  // namespace detent::bench
