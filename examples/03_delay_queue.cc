// A queue whose elements come out after a delay. Two workers cancel orders that were not paid
// within half an hour. The program moves the clock itself, so half an hour passes at once. Without
// `.clock`, the queue uses the system clock.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "detent/delay_queue.h"

using namespace std::chrono_literals;

namespace {

struct Order {
  std::string name;
};

}  // namespace

int main() {
  detent::ManualClock clock;
  detent::DelayQueue<Order> unpaid({.capacity = 1000, .clock = &clock});

  std::atomic<int> cancelled = 0;
  const auto work = [&] {
    while (const std::optional<Order> order = unpaid.pop()) {
      std::printf("cancelled %s\n", order->name.c_str());
      ++cancelled;
    }  // the queue is closed and empty
  };
  std::vector<std::thread> workers;
  workers.emplace_back(work);
  workers.emplace_back(work);

  unpaid.push({.name = "order 1"}, 30min);
  unpaid.push({.name = "order 2"}, 5min);  // due earlier: wakes a sleeping worker
  unpaid.push({.name = "order 3"}, 45min);

  clock.await_waiters(2);  // both workers sleep: all due orders were taken
  clock.advance(30min);
  clock.await_waiters(2);
  const int cancelled_in_time = cancelled;

  unpaid.close();
  const std::vector<detent::Delayed<Order>> left = unpaid.take_all();
  for (std::thread& worker : workers) worker.join();
  for (const detent::Delayed<Order>& order : left) {
    std::printf("still open: %s\n", order.value.name.c_str());
  }
  return cancelled_in_time == 2 && left.size() == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
