// The client, where it was installed: that it links, and says why there is no server at a port that
// nobody listens on. Runs before main().
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
