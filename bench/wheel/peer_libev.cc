// The adapter of libev's ev_timer for timers_bench: a 4-ary heap, postponed by ev_timer_again.
#include <ev.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "bench/wheel/contender.h"
#include "bench/wheel/peers.h"
#include "bench/wheel/virtual_clock.h"

namespace detent::bench {
namespace {

class LibevQueue {
 public:
  static constexpr QueueLimits kLimits{.has_next = false};
  static constexpr std::size_t kObjectBytes = sizeof(ev_timer);

  explicit LibevQueue(const Capacity& capacity)
      : loop_(ev_loop_new(EVBACKEND_EPOLL), &ev_loop_destroy),
        timers_(capacity.timers, capacity.pages) {
    ev_set_userdata(loop_.get(), this);
    for (ev_timer& timer : timers_.all()) ev_timer_init(&timer, &on_timer, 0, 0);
  }

  void schedule(std::uint32_t id, Tick deadline) {
    ev_timer& timer = timers_[id];
    ev_timer_stop(loop_.get(), &timer);
    ev_timer_set(&timer, seconds_until(deadline), 0);
    ev_timer_start(loop_.get(), &timer);
  }
  void cancel(std::uint32_t id) { ev_timer_stop(loop_.get(), &timers_[id]); }
  void postpone(std::uint32_t id, Tick deadline) {
    ev_timer& timer = timers_[id];
    timer.repeat = seconds_until(deadline);
    ev_timer_again(loop_.get(), &timer);
  }
  void advance(Tick now, Fired& fired) {
    fired_ = &fired;
    clock_.set(now);
    ev_run(loop_.get(), EVRUN_NOWAIT);
  }
  std::optional<Tick> next() const { return std::nullopt; }

 private:
  static void on_timer(struct ev_loop* loop, ev_timer* timer, int) {
    ev_timer_stop(loop, timer);  // a postponed timer repeats
    auto& queue = *static_cast<LibevQueue*>(ev_userdata(loop));
    (*queue.fired_)(static_cast<std::uint32_t>(queue.timers_.index_of(*timer)));
  }

  // libev stores seconds in a double, and fires timers that are due before now, not at now. The
  // clock is a quarter of a tick ahead to compensate for both.
  ev_tstamp seconds_until(Tick deadline) const {
    return (static_cast<double>(clock_.delay_until(deadline)) - 0.25) * 1e-3;
  }

  VirtualClock clock_;
  std::unique_ptr<struct ev_loop, decltype(&ev_loop_destroy)> loop_;
  Fired* fired_ = nullptr;
  PageArray<ev_timer> timers_;
};

}  // namespace

Contender libev_contender() {
  return contender<LibevQueue>("libev",
                               "an epoll_wait a tick; it reads the clock once a tick by itself");
}

}  // namespace detent::bench
