// Checks that an installed client links, and that it reports a port without a server. Runs before
// main().
#include "detent/client.h"

#include <cstdlib>

#include "detent/verify_webhook.h"
#include "detent/worker.h"

namespace {

const bool kIsRefused = [] {
  auto client = detent::Client::create("http://127.0.0.1:1", {.retry_for = {}}).value();
  const detent::Worker worker(client, "q", [](const detent::WorkTask&) { return detent::Done{}; });
  if (client.queues().error().code != detent::ClientError::Code::unavailable) std::abort();
  if (detent::verify_webhook({}, {}, "").error().code != detent::ClientError::Code::forbidden) {
    std::abort();
  }
  return true;
}();

}  // namespace
