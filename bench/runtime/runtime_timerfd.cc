// One thread that waits on a bare timerfd: the smallest lateness that this kernel can reach.
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "bench/runtime/runtime_peer.h"
#include "detent/check.h"

namespace detent::bench {
namespace {

class TimerfdRuntime final : public RuntimePeer {
 public:
  std::string name() const override { return "bare timerfd"; }
  std::string note() const override {
    return "absolute, CLOCK_MONOTONIC, a timer slack of 1 ns; a thread that blocks in read";
  }
  std::uint64_t count_wrong() override {
    std::uint64_t wrong = 0;
    for (const double late : lateness({.shortest = std::chrono::microseconds{1},
                             .longest = std::chrono::microseconds{1'000},
                             .samples = 100})) {
      if (late < 0) ++wrong;
    }
    return wrong;
  }
  std::optional<double> schedule_and_cancel(const RuntimeLoad&) override { return std::nullopt; }
  std::optional<CancelCost> cancel(const RuntimeLoad&) override { return std::nullopt; }
  std::optional<double> refresh(const RuntimeLoad&) override { return std::nullopt; }
  std::optional<ProcessCost> idle(const RuntimeLoad&) override { return std::nullopt; }

  std::vector<double> lateness(const RuntimeLoad& load) override {
    using Nanoseconds = std::chrono::nanoseconds;
    const int slack_before = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1);
    const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    DETENT_CHECK(timer >= 0);
    std::vector<double> measured;
    Rng random(load.seed);
    while (measured.size() < load.samples) {
      const auto range = static_cast<std::uint32_t>((load.longest - load.shortest).count());
      const Nanoseconds delay = load.shortest + std::chrono::microseconds{random.below(range)};
      const Nanoseconds deadline = now() + delay;
      const itimerspec until{
          .it_value = {.tv_sec = static_cast<time_t>(deadline / std::chrono::seconds{1}),
                       .tv_nsec = (deadline % std::chrono::seconds{1}).count()}};
      DETENT_CHECK(timerfd_settime(timer, TFD_TIMER_ABSTIME, &until, nullptr) == 0);
      std::uint64_t times = 0;
      DETENT_CHECK(read(timer, &times, sizeof(times)) == sizeof(times));
      measured.push_back(static_cast<double>((now() - deadline).count()));
    }
    close(timer);
    prctl(PR_SET_TIMERSLACK, slack_before);
    return measured;
  }

 private:
  static std::chrono::nanoseconds now() {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
};

}  // namespace

std::unique_ptr<RuntimePeer> timerfd_runtime() { return std::make_unique<TimerfdRuntime>(); }

}  // namespace detent::bench
