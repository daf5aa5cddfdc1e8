#include "delivery/engine_webhooks.h"

#include <utility>

namespace detent {
namespace {

/// Gives the answer once. If it is destroyed before, it gives an empty answer.
class Answer {
 public:
  explicit Answer(WebhookSource::Taken taken) : taken_(std::move(taken)) {}
  Answer(Answer&&) noexcept = default;
  Answer& operator=(Answer&&) = delete;
  ~Answer() {
    if (taken_) taken_({});
  }

  void give(std::vector<Delivery> deliveries) {
    WebhookSource::Taken taken = std::move(taken_);
    taken(std::move(deliveries));
  }

 private:
  WebhookSource::Taken taken_;
};

/// The result of the verb is ignored: a lease that is no longer held has expired.
void end_lease(Engine& engine, LeaseToken lease, Verdict verdict) {
  switch (verdict.verb) {
    case Verdict::Verb::complete:
      (void)engine.complete(lease);  // the result is ignored, see above
      return;
    case Verdict::Verb::fail:
      // As above.
      (void)engine.fail({.lease = lease,
                         .delay = {},
                         .least_delay = verdict.delay.value_or(std::chrono::milliseconds{0}),
                         .error = std::move(verdict.error)});
      return;
    case Verdict::Verb::bury:
      // As above.
      (void)engine.bury(lease, std::move(verdict.error));
      return;
    case Verdict::Verb::release:
      // As above.
      (void)engine.release(lease, verdict.delay);
      return;
  }
}

}  // namespace

void EngineWebhooks::take(std::size_t max, std::vector<std::string> held, Taken taken) {
  // A command that is refused goes away, and its answer with it. In a line of its own, as it is for
  // all queues.
  (void)engine_.post(
      [max, held = std::move(held), answer = Answer(std::move(taken))](Engine& engine) mutable {
        engine.lease_deliveries_or_wait(
            {.max = max, .visibility_timeout = kDeliveryLease}, held,
            [answer = std::move(answer)](Result<std::vector<Delivery>> deliveries) mutable {
              answer.give(deliveries ? *std::move(deliveries) : std::vector<Delivery>{});
            });
      },
      EngineThread::own_line());
}

void EngineWebhooks::end(LeaseToken lease, Verdict verdict) {
  engine_.post_end_of_lease(
      [lease, verdict = std::move(verdict)](Engine& engine) mutable {
        end_lease(engine, lease, std::move(verdict));
      },
      [lease](const Engine& engine) { return std::string(engine.queue_of(lease)); });
}

}  // namespace detent
