// Tasks that outlive the process: orders are cancelled after 30 days unless they are paid, even if
// the program does not run during these days. It needs only a folder, and no server.
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <string>

#include "detent/durable_scheduler.h"

using namespace std::chrono_literals;

/// The first run of the program: three orders arrive, and one of them is paid.
void take_orders(const std::string& folder, detent::Clock& clock) {
  auto ds = detent::DurableScheduler::open({.path = folder, .clock = &clock}).value();
  for (const char* const order : {"o-1001", "o-1002", "o-1003"}) {
    const auto scheduled =
        ds.schedule({.name = "order.cancel", .key = order, .payload = order}, 30 * 24h);
    if (!scheduled) std::printf("%s: %s\n", order, scheduled.error().message.c_str());
  }
  ds.cancel("order.cancel", "o-1002");
}

/// The next run, a month later. Returns the orders that it cancelled.
std::string cancel_unpaid_orders(const std::string& folder, detent::Clock& clock) {
  auto ds = detent::DurableScheduler::open({.path = folder, .clock = &clock}).value();
  std::string cancelled;  // one handler runs at a time
  std::latch unpaid(2);
  ds.on("order.cancel", [&](const detent::TaskView& order) {
    cancelled += std::string(order.payload()) + " ";
    unpaid.count_down();
    return detent::Outcome::done;
  });
  ds.start();  // after all handlers were set
  unpaid.wait();
  ds.stop();
  return cancelled;
}

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "orders-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return EXIT_FAILURE;
  detent::ManualClock clock;

  take_orders(folder, clock);
  clock.advance(30 * 24h);
  const std::string cancelled = cancel_unpaid_orders(folder, clock);
  std::printf("cancelled: %s\n", cancelled.c_str());

  std::filesystem::remove_all(folder);
  return cancelled == "o-1001 o-1003 " ? EXIT_SUCCESS : EXIT_FAILURE;
}
