// The adapter of libuv's uv_timer_t for runtime_bench. A uv_loop_t belongs to one thread. With one
// thread, all calls run on it. Several threads pass their calls to the loop's thread, as the manual
// of libuv recommends: through a queue with a lock, and a uv_async_t that wakes the loop.
#include <uv.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "bench/machine.h"
#include "bench/runtime/runtime_workloads.h"

namespace detent::bench {
namespace {

class LibuvRuntime {
 public:
  LibuvRuntime(std::uint32_t timers, std::uint32_t threads, OnFire on_fire)
      : on_fire_(std::move(on_fire)), threads_(threads), timers_(timers, Pages::small) {
    uv_loop_init(&loop_);
    loop_.data = this;
    uv_async_init(&loop_, &wake_up_, &on_wake_up);
    for (uv_timer_t& timer : timers_.all()) uv_timer_init(&loop_, &timer);
  }
  ~LibuvRuntime() {
    for (uv_timer_t& timer : timers_.all()) uv_close(reinterpret_cast<uv_handle_t*>(&timer), {});
    uv_close(reinterpret_cast<uv_handle_t*>(&wake_up_), {});
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }
  LibuvRuntime(const LibuvRuntime&) = delete;
  LibuvRuntime& operator=(const LibuvRuntime&) = delete;

  void schedule(std::uint32_t timer, std::chrono::microseconds delay) {
    // libuv counts in milliseconds. A timer must not fire early, so it is set to the next
    // millisecond.
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(delay);
    call({timer, static_cast<std::uint64_t>(milliseconds.count())});
  }
  void cancel(std::uint32_t timer) { call({timer, std::nullopt}); }
  void refresh(std::uint32_t timer, std::chrono::microseconds delay) { schedule(timer, delay); }

  template <class Step>
  void run(Step step) {
    if (threads_ == 1) {
      while (step(0)) uv_run(&loop_, UV_RUN_NOWAIT);
      return;
    }
    is_shared_ = true;
    std::jthread loop([this] { uv_run(&loop_, UV_RUN_DEFAULT); });
    std::vector<std::jthread> threads;
    for (std::uint32_t thread = 0; thread < threads_; ++thread) {
      threads.emplace_back([&step, thread] {
        while (step(thread)) {
        }
      });
    }
    threads.clear();  // joins
    settle();
    stop_ = true;
    uv_async_send(&wake_up_);
    loop.join();
    is_shared_ = false;
  }
  void settle() const {
    while (waiting_calls_ > 0) std::this_thread::yield();
  }

  template <class Start>
  void serve(Start start) {
    is_serving_ = true;
    start();
    uv_run(&loop_, UV_RUN_DEFAULT);
  }
  void finish() { uv_stop(&loop_); }

  std::uint64_t pending() {
    std::uint64_t count = 0;
    for (const uv_timer_t& timer : timers_.all()) {
      if (uv_is_active(reinterpret_cast<const uv_handle_t*>(&timer)) != 0) ++count;
    }
    return count;
  }

 private:
  struct Call {
    std::uint32_t timer;
    std::optional<std::uint64_t> milliseconds;  // empty: cancels
  };

  // Threads that are faster than the loop must wait for it here.
  static constexpr std::size_t kWaitingCalls = 1 << 16;

  void call(const Call& call) {
    if (!is_shared_) return carry_out(call);
    while (waiting_calls_ >= kWaitingCalls) std::this_thread::yield();
    bool is_first = false;
    {
      const std::lock_guard lock(mutex_);
      is_first = calls_.empty();
      calls_.push_back(call);
      ++waiting_calls_;
    }
    if (is_first) uv_async_send(&wake_up_);
  }
  void carry_out(const Call& call) {
    if (call.milliseconds) {
      // Delays count from the loop's last reading of its clock, but a timer must not be early.
      if (is_serving_) uv_update_time(&loop_);
      uv_timer_start(&timers_[call.timer], &on_timer, *call.milliseconds, 0);
    } else {
      uv_timer_stop(&timers_[call.timer]);
    }
  }

  static void on_wake_up(uv_async_t* wake_up) {
    auto& runtime = *static_cast<LibuvRuntime*>(wake_up->loop->data);
    {
      const std::lock_guard lock(runtime.mutex_);
      std::swap(runtime.calls_, runtime.taken_);
    }
    for (const Call& call : runtime.taken_) runtime.carry_out(call);
    runtime.waiting_calls_ -= runtime.taken_.size();
    runtime.taken_.clear();
    if (runtime.stop_) uv_stop(&runtime.loop_);
  }
  static void on_timer(uv_timer_t* timer) {
    auto& runtime = *static_cast<LibuvRuntime*>(timer->loop->data);
    runtime.on_fire_(static_cast<std::uint32_t>(runtime.timers_.index_of(*timer)));
  }

  OnFire on_fire_;
  std::uint32_t threads_;
  bool is_shared_ = false;  // changes only while no other thread runs
  bool is_serving_ = false;
  uv_loop_t loop_{};
  uv_async_t wake_up_{};
  PageArray<uv_timer_t> timers_;

  std::atomic<bool> stop_ = false;
  std::atomic<std::size_t> waiting_calls_ = 0;
  std::mutex mutex_;
  std::vector<Call> calls_;  // guarded by mutex_
  std::vector<Call> taken_;  // touched only by the loop's thread
};

}  // namespace

std::unique_ptr<RuntimePeer> libuv_runtime() {
  return std::make_unique<InProcess<LibuvRuntime>>(
      RuntimeCard{.name = "libuv",
                  .note = "1 thread: on the loop's thread, a uv_run every 64 pairs; more: a locked "
                          "queue of calls and a uv_async_t; its unit is a millisecond",
                  .takes_part = {.refresh = true, .lateness = true},
                  .unit = std::chrono::milliseconds{1}});
}

}  // namespace detent::bench
