// The adapter of Boost.Asio's steady_timer for runtime_bench: each timer has one object and one
// async_wait. As many threads as schedule run one io_context. The handler of a cancelled wait runs,
// too, with an error. A run is over when all handlers have run.
//
// Timers are scheduled either by handlers on the threads of the io_context, the usual way to use
// Asio, or by the same number of other threads.
#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "bench/machine.h"
#include "bench/runtime/runtime_workloads.h"

namespace detent::bench {
namespace {

namespace asio = boost::asio;

enum class Caller : std::uint8_t { handlers, other_threads };

template <Caller kCaller>
class AsioRuntime {
 public:
  AsioRuntime(std::uint32_t timers, std::uint32_t threads, OnFire on_fire)
      : on_fire_(std::move(on_fire)),
        threads_(threads),
        counts_(2 * threads),
        loop_(kCaller == Caller::handlers ? static_cast<int>(threads)
                                          : BOOST_ASIO_CONCURRENCY_HINT_DEFAULT),
        timers_(timers, Pages::small, loop_) {
    index_of_thread = 0;
  }

  void schedule(std::uint32_t timer, std::chrono::microseconds delay) {
    count(&Counts::cancelled, timers_[timer].expires_after(delay));
    count(&Counts::waits, 1);
    timers_[timer].async_wait([this, timer](const boost::system::error_code& error) {
      count(error ? &Counts::aborted : &Counts::fired, 1);
      if (!error) on_fire_(timer);
    });
  }
  void cancel(std::uint32_t timer) { count(&Counts::cancelled, timers_[timer].cancel()); }
  void refresh(std::uint32_t timer, std::chrono::microseconds delay) {
    schedule(timer, delay);  // expires_after cancels the previous wait
  }

  template <class Step>
  void run(Step step) {
    loop_.restart();
    if constexpr (kCaller == Caller::handlers) {
      running_ = threads_;
      for (std::uint32_t thread = 0; thread < threads_; ++thread) call_again(step, thread);
      run_loop(threads_);
    } else {
      std::jthread loop([&] { run_loop(threads_); });
      call_beside(step);
      settle();
      loop_.stop();
    }
  }
  /// Waits until the handlers of all cancelled waits have run, on the threads of the loop.
  void settle() const {
    while (!is_settled()) std::this_thread::yield();
  }

  template <class Start>
  void serve(Start start) {
    loop_.restart();
    asio::post(loop_, [&start] { start(); });
    run_loop(1);
  }
  void finish() { loop_.stop(); }

  std::uint64_t pending() const {
    return sum(&Counts::waits) - sum(&Counts::aborted) - sum(&Counts::fired);
  }

 private:
  // The requests and events of one thread. Only this thread writes them, so counting costs very
  // little. All threads read them, relaxed. The sums are final when all work is done.
  struct alignas(64) Counts {
    std::atomic<std::uint64_t> waits = 0;
    std::atomic<std::uint64_t> cancelled = 0;
    std::atomic<std::uint64_t> aborted = 0;
    std::atomic<std::uint64_t> fired = 0;
  };
  using Count = std::atomic<std::uint64_t> Counts::*;

  void count(Count which, std::uint64_t more) {
    std::atomic<std::uint64_t>& mine = counts_[index_of_thread].*which;
    mine.store(mine.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  std::uint64_t sum(Count which) const {
    std::uint64_t total = 0;
    for (const Counts& each : counts_) total += (each.*which).load(std::memory_order_relaxed);
    return total;
  }
  bool is_settled() const { return sum(&Counts::aborted) == sum(&Counts::cancelled); }

  // A handler that calls step once and posts the next such handler, so other handlers run in
  // between.
  template <class Step>
  void call_again(Step& step, std::uint32_t thread) {
    asio::post(loop_, [this, &step, thread] {
      if (step(thread)) return call_again(step, thread);
      if (--running_ == 0) stop_when_settled();
    });
  }
  void stop_when_settled() {
    if (is_settled()) return loop_.stop();
    asio::post(loop_, [this] { stop_when_settled(); });
  }

  template <class Step>
  void call_beside(Step& step) {
    std::vector<std::jthread> threads;
    for (std::uint32_t thread = 0; thread < threads_; ++thread) {
      threads.emplace_back([this, &step, thread] {
        index_of_thread = threads_ + thread;
        while (step(thread)) {
        }
      });
    }
  }

  // On this thread and `threads` - 1 other threads.
  void run_loop(std::uint32_t threads) {
    std::vector<std::jthread> others;
    for (std::uint32_t other = 1; other < threads; ++other) {
      others.emplace_back([this, other] {
        index_of_thread = other;
        loop_.run();
      });
    }
    loop_.run();
  }

  static inline thread_local std::size_t index_of_thread = 0;  // in counts_

  OnFire on_fire_;
  std::uint32_t threads_;
  std::atomic<std::uint32_t> running_ = 0;
  std::vector<Counts> counts_;
  asio::io_context loop_;
  asio::executor_work_guard<asio::io_context::executor_type> keep_running_{loop_.get_executor()};
  // Destroyed first, because they belong to the loop.
  PageArray<asio::basic_waitable_timer<std::chrono::steady_clock>> timers_;
};

}  // namespace

std::unique_ptr<RuntimePeer> asio_runtime() {
  return std::make_unique<InProcess<AsioRuntime<Caller::handlers>>>(
      RuntimeCard{.name = "Boost.Asio",
                  .note = "steady_timer; scheduled by handlers on as many threads of one "
                          "io_context, 64 pairs a handler",
                  .takes_part = {.refresh = true, .lateness = true}});
}

std::unique_ptr<RuntimePeer> asio_runtime_from_outside() {
  return std::make_unique<InProcess<AsioRuntime<Caller::other_threads>>>(
      RuntimeCard{.name = "Asio (outside)",
                  .note = "the same, scheduled by threads beside as many of the io_context",
                  .takes_part = {.cancel = true}});
}

}  // namespace detent::bench
