// A scheduler in a program with Boost.Asio. Jobs run in io_context::run, together with the other
// work of the program. Sleeps work in Asio's coroutines, here as a time limit. The program moves
// the clock itself, so seconds pass at once. Without `.clock`, the scheduler uses the system clock.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>

#include "detent/asio.h"

namespace asio = boost::asio;
using asio::experimental::awaitable_operators::operator||;  // NOLINT(misc-unused-using-decls)
using namespace std::chrono_literals;

namespace {

/// Stands for a request to a slow server.
asio::awaitable<void> request(detent::Scheduler& scheduler, std::chrono::seconds length) {
  co_await detent::async_sleep_for(scheduler, length, asio::use_awaitable);
}

asio::awaitable<bool> request_within_5s(detent::Scheduler& scheduler, std::chrono::seconds length) {
  const auto first = co_await (request(scheduler, length) ||
                               detent::async_sleep_for(scheduler, 5s, asio::use_awaitable));
  co_return first.index() == 0;  // the other operation has been cancelled
}

}  // namespace

int main() {
  asio::io_context io;
  detent::AsioExecutor on_io(io.get_executor());
  detent::ManualClock clock;
  detent::Scheduler scheduler({.clock = &clock, .executor = &on_io});

  int beats = 0;  // written only in io.run() and io.poll()
  const auto beat = scheduler.schedule_every({.period = 1s}, [&beats] { ++beats; });
  std::future<bool> fast = asio::co_spawn(io, request_within_5s(scheduler, 2s), asio::use_future);
  std::future<bool> slow = asio::co_spawn(io, request_within_5s(scheduler, 60s), asio::use_future);
  io.poll();  // both requests begin
  for (int second = 0; second < 5; ++second) {
    clock.advance(1s);
    clock.await_waiters(1);  // the scheduler sleeps: io has all due jobs
    io.poll();
  }
  io.run();  // until both requests have ended
  const bool as_expected = fast.get() && !slow.get() && beats == 5;
  std::printf("the fast request was in time, the slow one was not; %d beats\n", beats);
  return as_expected ? EXIT_SUCCESS : EXIT_FAILURE;
}
