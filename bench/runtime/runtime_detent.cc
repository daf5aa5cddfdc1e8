// The adapter of detent::Scheduler for runtime_bench: default options, and an array of handles.
#include <cstdint>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "bench/runtime/runtime_workloads.h"
#include "detent/scheduler.h"

namespace detent::bench {
namespace {

template <bool kSpins>
class DetentRuntime {
 public:
  DetentRuntime(std::uint32_t timers, std::uint32_t threads, OnFire on_fire)
      : on_fire_(std::move(on_fire)), threads_(threads), scheduler_(options()), timers_(timers) {}

  void schedule(std::uint32_t timer, std::chrono::microseconds delay) {
    timers_[timer] = scheduler_.schedule_after(delay, [this, timer] { on_fire_(timer); });
  }
  void cancel(std::uint32_t timer) { timers_[timer].cancel(); }
  void refresh(std::uint32_t timer, std::chrono::microseconds delay) {
    timers_[timer].expires_after(delay);
  }

  template <class Step>
  void run(Step step) {
    std::vector<std::jthread> threads;
    for (std::uint32_t thread = 0; thread < threads_; ++thread) {
      threads.emplace_back([&step, thread] {
        while (step(thread)) {
        }
      });
    }
  }
  void settle() {}

  template <class Start>
  void serve(Start start) {
    // On the driver's thread, like all later calls, because a handle belongs to one thread.
    scheduler_.schedule_after(std::chrono::seconds{0}, [&start] { start(); }).release();
    finished_.acquire();
  }
  void finish() { finished_.release(); }

  std::uint64_t pending() const { return scheduler_.stats().pending; }

 private:
  static SchedulerOptions options() {
    if constexpr (!kSpins) return {};
    return {.resolution = std::chrono::microseconds{1}, .spin = std::chrono::microseconds{50}};
  }

  OnFire on_fire_;
  std::uint32_t threads_;
  std::binary_semaphore finished_{0};
  Scheduler scheduler_;
  std::vector<TimerHandle> timers_;  // destroyed first, which cancels them
};

}  // namespace

std::unique_ptr<RuntimePeer> detent_runtime() {
  return std::make_unique<InProcess<DetentRuntime<false>>>(
      RuntimeCard{.name = "Scheduler",
                  .note = "default options; called from the threads beside its driver's",
                  .takes_part = {.cancel = true, .refresh = true, .lateness = true}});
}

std::unique_ptr<RuntimePeer> detent_runtime_that_spins() {
  return std::make_unique<InProcess<DetentRuntime<true>>>(
      RuntimeCard{.name = "Scheduler, spin",
                  .note = "with .resolution = 1us, .spin = 50us",
                  .takes_part = {.lateness = true}});
}

}  // namespace detent::bench
