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

/// A lease that is no longer held has expired.
Result<LeaseOutcome> end_lease(Engine& engine, LeaseToken lease, Verdict verdict) {
  switch (verdict.verb) {
    case Verdict::Verb::complete:
      return engine.complete(lease);
    case Verdict::Verb::fail:
      return engine.fail({.lease = lease,
                          .delay = {},
                          .least_delay = verdict.delay.value_or(std::chrono::milliseconds{0}),
                          .error = std::move(verdict.error)});
    case Verdict::Verb::bury:
      return engine.bury(lease, std::move(verdict.error));
    case Verdict::Verb::release:
      break;
  }
  return engine.release(lease, verdict.delay);
}

SpanStep step_of(Verdict::Verb verb) noexcept {
  switch (verb) {
    case Verdict::Verb::complete:
      return SpanStep::complete;
    case Verdict::Verb::fail:
      return SpanStep::fail;
    case Verdict::Verb::bury:
      return SpanStep::bury;
    case Verdict::Verb::release:
      break;
  }
  return SpanStep::release;
}

}  // namespace

void EngineWebhooks::take(std::size_t max, std::vector<std::string> held, Taken taken) {
  // A command that is refused goes away, and its answer with it. In a line of its own, as it is for
  // all queues.
  (void)engine_.post(
      [max, held = std::move(held), answer = Answer(std::move(taken)),
       tracer = tracer_](Engine& engine) mutable {
        engine.lease_deliveries_or_wait(
            {.max = max, .visibility_timeout = kDeliveryLease}, held,
            [answer = std::move(answer), tracer](Result<std::vector<Delivery>> deliveries) mutable {
              if (tracer != nullptr && deliveries) {
                for (const Delivery& delivery : *deliveries) tracer->leased(delivery.leased);
              }
              answer.give(deliveries ? *std::move(deliveries) : std::vector<Delivery>{});
            });
      },
      EngineThread::own_line());
}

void EngineWebhooks::end(LeaseToken lease, Verdict verdict) {
  const WallInstant began = tracer_ != nullptr ? tracer_->now() : WallInstant{};
  engine_.post_end_of_lease(
      [lease, verdict = std::move(verdict), tracer = tracer_, began](Engine& engine) mutable {
        const SpanStep step = step_of(verdict.verb);
        const Result<LeaseOutcome> outcome = end_lease(engine, lease, std::move(verdict));
        const bool is_over = outcome && *outcome != LeaseOutcome::conflict;
        if (tracer == nullptr || !is_over) return;
        engine.after_commit([tracer, lease, step, began](const Result<void>& committed) {
          if (committed) tracer->settled(lease, step, began);
        });
      },
      [lease](const Engine& engine) { return std::string(engine.queue_of(lease)); });
}

}  // namespace detent
