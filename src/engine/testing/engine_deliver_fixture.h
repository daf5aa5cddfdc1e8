// An engine with a deliverer, for the tests of webhooks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/testing/engine_fixture.h"

namespace detent {

class EngineDeliver : public EngineFixture {
 protected:
  static constexpr const char* kUrl = "https://example.com/hook";
  static std::string a_key() { return "whsec_" + std::string(32, 'A'); }

  static ScheduleRequest hook(const std::string& queue, Due due = 0ms) {
    ScheduleRequest asked = request(queue, due);
    asked.webhook = kUrl;
    return asked;
  }
  static QueueSettings with_webhook(const std::string& url = "https://queue.example") {
    return {.webhook = QueueWebhook{.url = url, .keys = {a_key()}}};
  }
  static QueueSettings to_sink() { return {.webhook = QueueWebhook{.url = "sink:a"}}; }
  std::vector<Delivery> deliver(std::size_t max = 1) {
    std::vector<Delivery> deliveries = engine_->lease_deliveries({.max = max}).value();
    settle();
    return deliveries;
  }
  std::vector<TaskId> deliver_ids(std::size_t max) {
    std::vector<TaskId> ids;
    for (const Delivery& delivery : deliver(max)) ids.push_back(delivery.leased.task.id);
    return ids;
  }
  /// Waits as the deliverer, and puts the answer into `got`.
  void wait_for_deliveries(std::vector<Delivery>& got, std::size_t max = 1) {
    engine_->lease_deliveries_or_wait({.max = max}, {}, [&got](Result<std::vector<Delivery>> all) {
      for (Delivery& delivery : all.value()) got.push_back(std::move(delivery));
    });
    settle();
  }
};

}  // namespace detent
