// The adapter of libevent's timers for runtime_bench. With one thread, all calls run on the loop's
// thread, on a base without locks. With several threads, another thread runs the loop, and
// evthread_use_pthreads makes the base thread-safe.
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/machine.h"
#include "bench/runtime/runtime_workloads.h"

namespace detent::bench {
namespace {

class LibeventRuntime {
 public:
  LibeventRuntime(std::uint32_t timers, std::uint32_t threads, OnFire on_fire)
      : on_fire_(std::move(on_fire)),
        threads_(threads),
        loop_(make_loop(threads), &event_base_free),
        timers_(timers, Pages::small) {
    for (event& timer : timers_.all()) evtimer_assign(&timer, loop_.get(), &on_timer, this);
  }
  ~LibeventRuntime() {
    for (event& timer : timers_.all()) event_del(&timer);
  }
  LibeventRuntime(const LibeventRuntime&) = delete;
  LibeventRuntime& operator=(const LibeventRuntime&) = delete;

  void schedule(std::uint32_t timer, std::chrono::microseconds delay) {
    constexpr std::chrono::seconds kSecond{1};
    const timeval time{.tv_sec = static_cast<time_t>(delay / kSecond),
                       .tv_usec = static_cast<suseconds_t>((delay % kSecond).count())};
    evtimer_add(&timers_[timer], &time);
  }
  void cancel(std::uint32_t timer) { evtimer_del(&timers_[timer]); }
  void refresh(std::uint32_t timer, std::chrono::microseconds delay) { schedule(timer, delay); }

  template <class Step>
  void run(Step step) {
    if (threads_ == 1) {
      while (step(0)) event_base_loop(loop_.get(), EVLOOP_NONBLOCK);
      return;
    }
    std::atomic<bool> has_ended = false;
    std::jthread loop([&] {
      event_base_loop(loop_.get(), EVLOOP_NO_EXIT_ON_EMPTY);
      has_ended = true;
    });
    std::vector<std::jthread> threads;
    for (std::uint32_t thread = 0; thread < threads_; ++thread) {
      threads.emplace_back([&step, thread] {
        while (step(thread)) {
        }
      });
    }
    threads.clear();      // joins
    while (!has_ended) {  // a loop that has not begun forgets a request to end
      event_base_loopbreak(loop_.get());
      std::this_thread::yield();
    }
  }
  void settle() {}

  template <class Start>
  void serve(Start start) {
    start();
    event_base_loop(loop_.get(), EVLOOP_NO_EXIT_ON_EMPTY);
  }
  void finish() { event_base_loopbreak(loop_.get()); }

  std::uint64_t pending() {
    return static_cast<std::uint64_t>(
        event_base_get_num_events(loop_.get(), EVENT_BASE_COUNT_ADDED));
  }

 private:
  static event_base* make_loop(std::uint32_t threads) {
    const std::unique_ptr<event_config, decltype(&event_config_free)> config(event_config_new(),
                                                                             &event_config_free);
    // The default resolution is that of epoll_wait: a millisecond.
    int flags = EVENT_BASE_FLAG_PRECISE_TIMER;
    if (threads == 1) flags |= EVENT_BASE_FLAG_NOLOCK;
    event_config_set_flag(config.get(), flags);
    return event_base_new_with_config(config.get());
  }

  // The callback of a timer gets one pointer, which is the runtime. The loop knows which event
  // fired.
  // NOLINTNEXTLINE(google-runtime-int): libevent's type.
  static void on_timer(evutil_socket_t, short, void* argument) {
    auto& runtime = *static_cast<LibeventRuntime*>(argument);
    const event& timer = *event_base_get_running_event(runtime.loop_.get());
    runtime.on_fire_(static_cast<std::uint32_t>(runtime.timers_.index_of(timer)));
  }

  OnFire on_fire_;
  std::uint32_t threads_;
  std::unique_ptr<event_base, decltype(&event_base_free)> loop_;
  PageArray<event> timers_;
};

}  // namespace

std::unique_ptr<RuntimePeer> libevent_runtime() {
  evthread_use_pthreads();
  return std::make_unique<InProcess<LibeventRuntime>>(
      RuntimeCard{.name = "libevent",
                  .note = "1 thread: on the loop's thread, no locks, a turn of the loop every 64 "
                          "pairs; more: evthread_use_pthreads; PRECISE_TIMER",
                  .takes_part = {.refresh = true, .lateness = true},
                  .unit = std::chrono::milliseconds{1}});
}

}  // namespace detent::bench
