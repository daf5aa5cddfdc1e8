#include "examples/orders/worker.h"

#include <charconv>
#include <utility>
#include <vector>

#include "detent/check.h"

namespace orders {
namespace {

constexpr std::size_t kMostAtOnce = 200;
constexpr std::chrono::milliseconds kWait{500};
constexpr std::chrono::milliseconds kRest{20};

/// The order's number, as the loader put it into the payload.
std::size_t order_of(const detent::client::LeasedTask& task) {
  const std::string& text = task.payload.data;
  std::size_t order = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), order);
  DETENT_CHECK(read.ec == std::errc());
  return order;
}

}  // namespace

Worker::Worker(std::string url, std::string queue, detent::Clock& clock, Ledger& ledger)
    : url_(std::move(url)),
      queue_(std::move(queue)),
      clock_(clock),
      ledger_(ledger),
      thread_([this] { run(); }) {}

Worker::~Worker() {
  stopping_ = true;
  stop_bell_.ring();
  thread_.join();
}

void Worker::run() {
  detent::Client client =
      detent::Client::create(url_, {.retry_for = std::chrono::milliseconds{0}}).value();
  while (!stopping_) {
    const auto tasks = client.lease(queue_, {.max = kMostAtOnce, .wait = kWait});
    if (!tasks) {
      rest();
      continue;
    }
    const auto now = std::chrono::floor<std::chrono::milliseconds>(clock_.wall_now());
    for (const auto& task : *tasks) ledger_.delivered(order_of(task), now);
    if (!tasks->empty()) finish(client, *tasks);
  }
}

void Worker::finish(detent::Client& client, const std::vector<detent::client::LeasedTask>& tasks) {
  std::vector<std::string> leases;
  for (const auto& task : tasks) leases.push_back(task.lease);
  const auto outcomes = client.complete(leases);
  if (!outcomes) {
    // The server died during the call, so each of these orders may come again.
    for (const auto& task : tasks) ledger_.answer_lost(order_of(task));
    return;
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto outcome = (*outcomes)[i];
    if (outcome == detent::client::LeaseStatus::done) ledger_.completed(order_of(tasks[i]));
    if (outcome == detent::client::LeaseStatus::conflict) ledger_.lease_lost();
  }
}

void Worker::rest() { (void)clock_.wait(stop_bell_, clock_.now() + kRest); }

}  // namespace orders
