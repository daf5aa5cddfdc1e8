// Cancels orders that are not paid within 30 days, with tasks on a server.
//
//     build/release/examples/example_14_client [URL]
//
// Places two orders. The first order is paid, so its cancellation is cancelled. The cancellation of
// the second order is moved to the present, and the worker carries it out. After that, the worker
// handles due tasks until SIGTERM or Ctrl-C.
#include <chrono>
#include <iostream>
#include <string>

#include "detent/client.h"
#include "detent/clock.h"
#include "detent/worker.h"

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using detent::client::Payload;
using detent::client::TaskKey;

int main(int argc, char** argv) {
  auto client = detent::Client::create(argc > 1 ? argv[1] : "http://127.0.0.1:7070").value();
  // Order numbers that no earlier run used. The server keeps a key for a while after the task's
  // end.
  const auto now = detent::SystemClock().wall_now().time_since_epoch();
  const std::string numbers = "o-" + std::to_string(now.count());
  const std::string paid = numbers + "-1";
  const std::string unpaid = numbers + "-2";
  for (const std::string& order : {paid, unpaid}) {
    // The key makes it safe to repeat this call if its answer is lost.
    const Payload payload{.data = "{\"order\":\"" + order + "\"}"};
    const auto scheduled =
        client.schedule({.queue = "orders", .payload = payload, .due = 30 * 24h, .key = order});
    if (!scheduled) {
      std::cerr << scheduled.error().message << '\n';
      return 1;
    }
  }

  client.cancel(TaskKey{"orders", paid}).value();
  std::cout << paid << " is paid: its cancellation is cancelled" << std::endl;
  (void)client.move(TaskKey{"orders", unpaid}, 0ms).value();  // as if 30 days had passed

  const auto cancel_order = [](const detent::WorkTask& task) -> detent::WorkResult {
    std::cout << task.task.key << " is due: cancelled\nworking until SIGTERM" << std::endl;
    return detent::Done{};
  };
  detent::Worker worker(client, "orders", cancel_order, {.concurrency = 4});
  worker.run();
  std::cout << "stopped\n";
}
