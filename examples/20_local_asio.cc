// A LocalScheduler in an io_context that one thread runs. One steady_timer stands for all timers of
// the scheduler. Its own clock is not used: the scheduler says how long to wait.
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "detent/local_scheduler.h"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

/// Drives a LocalScheduler from an io_context. Call `aim` after a handler that scheduled timers.
class AsioDrive {
 public:
  AsioDrive(asio::io_context& io, detent::LocalScheduler& timers) : timers_(timers), alarm_(io) {}

  void aim() {
    const auto wait = timers_.time_to_next();
    if (!wait) {
      alarm_.cancel();
      return;
    }
    alarm_.expires_after(*wait);
    alarm_.async_wait([this](boost::system::error_code error) {
      if (error) return;  // aimed again
      timers_.run_ready({.time = 2ms});
      aim();
    });
  }

 private:
  detent::LocalScheduler& timers_;
  asio::steady_timer alarm_;
};

}  // namespace

int main() {
  asio::io_context io;
  detent::LocalScheduler timers;
  AsioDrive drive(io, timers);
  int beats = 0;
  bool timed_out = false;
  detent::TimerHandle reply_timeout;
  asio::post(io, [&] {  // a handler of the program
    timers.begin_turn();
    timers.schedule_every({.period = 2ms, .count = 5}, [&beats] { ++beats; }).release();
    reply_timeout = timers.schedule_after(5s, [&timed_out] { timed_out = true; });
    timers.schedule_after(5ms, [&reply_timeout] { reply_timeout.cancel(); }).release();
    timers.run_ready();
    drive.aim();
  });
  io.run();  // until no timer is left
  std::printf("%d beats, %s\n", beats, timed_out ? "timed out" : "the reply came in time");
  return beats == 5 && !timed_out ? EXIT_SUCCESS : EXIT_FAILURE;
}
