// What goes to webhooks, handed to the deliverer: the queues take turns, by a ring of those that
// have something and are not held back by a limit.
#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/engine.h"
#include "engine/engine_state.h"

namespace detent {

Result<std::vector<Delivery>> Engine::lease_deliveries(const DeliveryRequest& request,
                                                       const HeldWebhooks& held) {
  if (stopped_by_) return *stopped_by_;
  TRY(validate(request));
  LeaseRequest lease{
      .queue = {}, .visibility_timeout = request.visibility_timeout, .worker = request.worker};
  release_held();
  std::vector<Delivery> deliveries;
  while (deliveries.size() < request.max && !to_deliver_.empty()) {
    Queue& queue = *to_deliver_.front();
    to_deliver_.pop_front();
    const bool is_plain_held = is_held(queue, held);
    if (is_plain_held && queue.webhooks.empty()) {
      queue.is_held = true;
      held_.push_back(&queue);
      continue;
    }
    queue.to_deliver = false;
    if (!queue.has_deliveries()) continue;
    if (allowance(queue) == 0) {
      hold_back(queue);
      continue;
    }
    const std::size_t left = request.max - deliveries.size();
    lease.max = std::max<std::size_t>(1, left / (to_deliver_.size() + 1));
    Result<std::vector<LeasedTask>> tasks =
        is_plain_held ? take_ready(queue, queue.webhooks, lease) : take_deliveries(queue, lease);
    want_delivery(queue);  // behind the others
    if (!tasks && deliveries.empty()) return std::move(tasks).error();
    if (!tasks) break;  // what is leased already must be told; the rest is tried with the next call
    const std::optional<QueueWebhook>& webhook = queue.record.settings.webhook;
    for (LeasedTask& task : *tasks) {
      std::string url = task.task.webhook.empty() ? webhook->url : task.task.webhook;
      deliveries.push_back({.leased = std::move(task), .url = std::move(url)});
      if (webhook) deliveries.back().keys = webhook->keys;
    }
  }
  if (!deliveries.empty()) is_deliverers_turn_ = false;
  return deliveries;
}

void Engine::lease_deliveries_or_wait(const DeliveryRequest& request, const HeldWebhooks& held,
                                      DeliveriesDone done) {
  end_delivery_wait(std::vector<Delivery>{});
  Result<std::vector<Delivery>> ready = lease_deliveries(request, held);
  if (!ready || !ready->empty() || waits_ended_) {
    answer_after_commit(std::move(done), std::move(ready));
    return;
  }
  delivery_wait_ = std::make_unique<DeliveryWait>(DeliveryWait{request, held, std::move(done)});
}

/// They take turns again, behind the others.
void Engine::release_held() {
  for (Queue* const queue : held_) queue->is_held = false;
  to_deliver_.insert(to_deliver_.end(), held_.begin(), held_.end());
  held_.clear();
}

/// But its tasks with a webhook of their own are not.
bool Engine::is_held(const Queue& queue, const HeldWebhooks& held) {
  const std::optional<QueueWebhook>& webhook = queue.record.settings.webhook;
  return webhook && std::ranges::find(held, webhook->url) != held.end();
}

/// The queue's turn comes, behind those that have something, too.
void Engine::want_delivery(Queue& queue) {
  if (queue.is_held && !queue.webhooks.empty()) {
    std::erase(held_, &queue);
    queue.is_held = queue.to_deliver = false;
  }
  if (queue.to_deliver || !queue.has_deliveries()) return;
  queue.to_deliver = true;
  to_deliver_.push_back(&queue);
}

/// The most urgent of what goes to webhooks; empty when what is first could not be read, or is not
/// at its head any more.
Result<std::vector<LeasedTask>> Engine::take_deliveries(Queue& queue, const LeaseRequest& request) {
  if (!queue.record.settings.webhook) return take_ready(queue, queue.webhooks, request);
  std::vector<LeasedTask> all;
  LeaseRequest rest = request;
  while (rest.max > 0) {
    Result<std::vector<LeasedTask>> run = take_run(queue, rest);
    // What is leased already must be told.
    if (!run && all.empty()) return run;
    if (!run || run->empty()) break;
    rest.max -= run->size();
    std::ranges::move(*run, std::back_inserter(all));
  }
  return all;
}

/// A step of merging the two orders: from the one whose head comes first, up to the other's.
Result<std::vector<LeasedTask>> Engine::take_run(Queue& queue, const LeaseRequest& request) {
  ASSIGN_OR_RETURN(const LoadedTask* const plain, head_of(queue, queue.ready));
  ASSIGN_OR_RETURN(const LoadedTask* const own, head_of(queue, queue.webhooks));
  const bool is_own = plain == nullptr || (own != nullptr && ReadyOrder()(own, plain));
  return take_ready(queue, is_own ? queue.webhooks : queue.ready, request, is_own ? plain : own);
}

void Engine::serve_delivery_wait() {
  if (delivery_wait_ == nullptr || to_deliver_.empty()) return;
  Result<std::vector<Delivery>> deliveries =
      lease_deliveries(delivery_wait_->request, delivery_wait_->held);
  if (!deliveries || !deliveries->empty()) end_delivery_wait(std::move(deliveries));
}

void Engine::end_delivery_wait(Result<std::vector<Delivery>> answer) {
  if (delivery_wait_ == nullptr) return;
  const std::unique_ptr<DeliveryWait> wait = std::move(delivery_wait_);
  answer_after_commit(std::move(wait->done), std::move(answer));
}

}  // namespace detent
