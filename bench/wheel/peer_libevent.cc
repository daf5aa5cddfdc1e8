// The adapter of libevent's timers for timers_bench: a struct event per timer, set by
// event_assign, in a binary heap.
#include <event2/event.h>
#include <event2/event_struct.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "bench/wheel/contender.h"
#include "bench/wheel/peers.h"
#include "bench/wheel/virtual_clock.h"

namespace detent::bench {
namespace {

class LibeventQueue {
 public:
  static constexpr QueueLimits kLimits{.has_next = false};
  static constexpr std::size_t kObjectBytes = sizeof(event);

  explicit LibeventQueue(const Capacity& capacity)
      : loop_(event_base_new(), &event_base_free), timers_(capacity.timers, capacity.pages) {
    for (event& timer : timers_.all()) evtimer_assign(&timer, loop_.get(), &on_timer, this);
  }
  ~LibeventQueue() {
    for (event& timer : timers_.all()) event_del(&timer);
  }
  LibeventQueue(const LibeventQueue&) = delete;
  LibeventQueue& operator=(const LibeventQueue&) = delete;

  void schedule(std::uint32_t id, Tick deadline) {
    const Tick delay = clock_.delay_until(deadline);
    const timeval time{.tv_sec = static_cast<time_t>(delay / 1'000),
                       .tv_usec = static_cast<suseconds_t>(delay % 1'000 * 1'000)};
    evtimer_add(&timers_[id], &time);
  }
  void cancel(std::uint32_t id) { evtimer_del(&timers_[id]); }
  void postpone(std::uint32_t id, Tick deadline) { schedule(id, deadline); }
  void advance(Tick now, Fired& fired) {
    fired_ = &fired;
    clock_.set(now);
    event_base_loop(loop_.get(), EVLOOP_NONBLOCK);
  }
  std::optional<Tick> next() const { return std::nullopt; }

 private:
  // The callback of a timer gets one pointer, which is the queue. The loop knows which event fired.
  // NOLINTNEXTLINE(google-runtime-int): libevent's type.
  static void on_timer(evutil_socket_t, short, void* argument) {
    auto& queue = *static_cast<LibeventQueue*>(argument);
    const event& timer = *event_base_get_running_event(queue.loop_.get());
    (*queue.fired_)(static_cast<std::uint32_t>(queue.timers_.index_of(timer)));
  }

  VirtualClock clock_;
  std::unique_ptr<event_base, decltype(&event_base_free)> loop_;
  Fired* fired_ = nullptr;
  PageArray<event> timers_;
};

}  // namespace

Contender libevent_contender() {
  return contender<LibeventQueue>("libevent",
                                  "an epoll_wait a tick; virtual time saves its clock calls");
}

}  // namespace detent::bench
