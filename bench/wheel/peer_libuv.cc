// The adapter of libuv's uv_timer_t for timers_bench: a binary heap of linked nodes.
#include <uv.h>

#include <cstdint>
#include <optional>

#include "bench/wheel/contender.h"
#include "bench/wheel/peers.h"
#include "bench/wheel/virtual_clock.h"

namespace detent::bench {
namespace {

class LibuvQueue {
 public:
  static constexpr QueueLimits kLimits{.has_next = false};
  static constexpr std::size_t kObjectBytes = sizeof(uv_timer_t);

  explicit LibuvQueue(const Capacity& capacity) : timers_(capacity.timers, capacity.pages) {
    uv_loop_init(&loop_);
    loop_.data = this;
    for (uv_timer_t& timer : timers_.all()) uv_timer_init(&loop_, &timer);
  }
  ~LibuvQueue() {
    for (uv_timer_t& timer : timers_.all()) uv_close(reinterpret_cast<uv_handle_t*>(&timer), {});
    uv_run(&loop_, UV_RUN_NOWAIT);
    uv_loop_close(&loop_);
  }
  LibuvQueue(const LibuvQueue&) = delete;
  LibuvQueue& operator=(const LibuvQueue&) = delete;

  void schedule(std::uint32_t id, Tick deadline) {
    uv_timer_start(&timers_[id], &on_timer, clock_.delay_until(deadline), 0);
  }
  void cancel(std::uint32_t id) { uv_timer_stop(&timers_[id]); }
  void postpone(std::uint32_t id, Tick deadline) { schedule(id, deadline); }
  void advance(Tick now, Fired& fired) {
    fired_ = &fired;
    clock_.set(now);
    uv_run(&loop_, UV_RUN_NOWAIT);
  }
  std::optional<Tick> next() const { return std::nullopt; }

 private:
  static void on_timer(uv_timer_t* timer) {
    auto& queue = *static_cast<LibuvQueue*>(timer->loop->data);
    (*queue.fired_)(static_cast<std::uint32_t>(queue.timers_.index_of(*timer)));
  }

  VirtualClock clock_;
  uv_loop_t loop_{};
  Fired* fired_ = nullptr;
  PageArray<uv_timer_t> timers_;
};

}  // namespace

Contender libuv_contender() {
  return contender<LibuvQueue>("libuv",
                               "an epoll_wait a tick; it reads the clock once a tick by itself");
}

}  // namespace detent::bench
