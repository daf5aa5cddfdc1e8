// The adapter of Boost.Asio's steady_timer for timers_bench: each timer has one object and one
// async_wait.
//
// Asio waits for the next timer with a timerfd of the kernel, which virtual time cannot move. So
// this file is compiled as for a system without timerfd. Asio then checks its timers in every poll.
// A timerfd that is always due is no solution: its interrupts would cost Asio tens of microseconds
// per tick.
#include <boost/asio/detail/config.hpp>
#undef BOOST_ASIO_HAS_TIMERFD

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <optional>

#include "bench/wheel/contender.h"
#include "bench/wheel/peers.h"
#include "bench/wheel/virtual_clock.h"

namespace detent::bench {
namespace {

namespace asio = boost::asio;
using Steady = std::chrono::steady_clock;

class AsioQueue {
  using Timer = asio::basic_waitable_timer<Steady>;

 public:
  static constexpr QueueLimits kLimits{.has_next = false};
  static constexpr std::size_t kObjectBytes = sizeof(Timer);

  explicit AsioQueue(const Capacity& capacity) : timers_(capacity.timers, capacity.pages, loop_) {}

  void schedule(std::uint32_t id, Tick deadline) {
    Timer& timer = timers_[id];
    timer.expires_at(kStart + std::chrono::milliseconds(deadline));
    timer.async_wait([this, id](const boost::system::error_code& error) {
      if (!error) (*fired_)(id);
    });
  }
  void cancel(std::uint32_t id) {
    timers_[id].cancel();
    drop_cancelled_handlers();
  }
  void postpone(std::uint32_t id, Tick deadline) {
    schedule(id, deadline);  // expires_at cancels the previous wait
    drop_cancelled_handlers();
  }
  void advance(Tick now, Fired& fired) {
    fired_ = &fired;
    clock_.set(now);
    loop_.poll();
    cancelled_ = 0;
  }
  std::optional<Tick> next() const { return std::nullopt; }

 private:
  static constexpr Steady::time_point kStart{std::chrono::seconds(VirtualClock::kStartSeconds)};

  // A cancelled wait's handler runs too, told so. A program's loop runs it soon; here
  // after so many.
  void drop_cancelled_handlers() {
    constexpr int kHandlersAtOnce = 64;
    if (++cancelled_ < kHandlersAtOnce) return;
    cancelled_ = 0;
    loop_.poll();
  }

  VirtualClock clock_;
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> keep_running_{loop_.get_executor()};
  int cancelled_ = 0;
  Fired* fired_ = nullptr;
  PageArray<Timer> timers_;  // destroyed first: they belong to the loop
};

}  // namespace

Contender asio_contender() {
  return contender<AsioQueue>(
      "Boost.Asio", "steady_timer without timerfd; a poll of its loop a tick and every 64 cancels");
}

}  // namespace detent::bench
