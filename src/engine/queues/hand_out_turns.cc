#include "engine/queues/hand_out_turns.h"

#include <algorithm>

#include "detent/check.h"

namespace detent {

void HandOutTurns::want_serving(Queue& queue) {
  want_delivery(queue);
  if (queue.waits.empty() || std::exchange(queue.to_serve, true)) return;
  to_serve_.push_back(&queue);
}

void HandOutTurns::want_delivery(Queue& queue) {
  if (queue.is_held() && !queue.webhooks.empty()) let_go(queue);
  if (queue.to_deliver || queue.is_held() || !queue.has_deliveries()) return;
  queue.to_deliver = true;
  to_deliver_.push_back(&queue);
}

Queue& HandOutTurns::take_to_serve() {
  DETENT_CHECK(!to_serve_.empty());
  Queue& queue = *to_serve_.front();
  DETENT_CHECK(queue.to_serve);
  to_serve_.pop_front();
  queue.to_serve = false;
  return queue;
}

void HandOutTurns::take_to_serve(Queue& queue) {
  DETENT_CHECK(queue.to_serve);
  const std::size_t erased = std::erase(to_serve_, &queue);
  DETENT_CHECK(erased == 1);
  queue.to_serve = false;
}

Queue& HandOutTurns::take_to_deliver() {
  DETENT_CHECK(!to_deliver_.empty());
  Queue& queue = *to_deliver_.front();
  DETENT_CHECK(queue.to_deliver);
  to_deliver_.pop_front();
  queue.to_deliver = false;
  return queue;
}

void HandOutTurns::hold(Queue& queue) {
  DETENT_CHECK(!queue.to_deliver && !queue.is_held());
  DETENT_CHECK(queue.record.settings.webhook && queue.webhooks.empty());
  queue.held_turn = ++last_held_turn_;
  held_[queue.record.settings.webhook->url].emplace(queue.held_turn, &queue);
}

void HandOutTurns::release_held(std::span<const std::string> still_held) {
  for (auto it = held_.begin(); it != held_.end();) {
    if (std::ranges::find(still_held, it->first) != still_held.end()) {
      ++it;
      continue;
    }
    for (const auto& [turn, queue] : it->second) {
      DETENT_CHECK(queue->held_turn == turn && !queue->to_deliver);
      queue->held_turn = 0;
      queue->to_deliver = true;
      to_deliver_.push_back(queue);
    }
    it = held_.erase(it);
  }
}

void HandOutTurns::release(Queue& queue) {
  if (!queue.is_held()) return;
  let_go(queue);
  queue.to_deliver = true;
  to_deliver_.push_back(&queue);
}

/// Ends the hold of the queue. Does not put the queue into a ring.
void HandOutTurns::let_go(Queue& queue) {
  const auto held = held_.find(queue.record.settings.webhook->url);
  DETENT_CHECK(held != held_.end());
  const std::size_t erased = held->second.erase(std::exchange(queue.held_turn, 0));
  DETENT_CHECK(erased == 1);
  if (held->second.empty()) held_.erase(held);
}

void HandOutTurns::serve_later(Queue& queue, Tick at) {
  if (queue.serve_at != 0) return;
  DETENT_CHECK(at != 0);
  queue.serve_at = at;
  serve_at_.emplace(at, &queue);
}

void HandOutTurns::forget_time(Queue& queue) {
  if (queue.serve_at == 0) return;
  const std::size_t erased = serve_at_.erase({queue.serve_at, &queue});
  DETENT_CHECK(erased == 1);
  queue.serve_at = 0;
}

std::optional<Tick> HandOutTurns::next_time() const {
  if (serve_at_.empty()) return std::nullopt;
  return serve_at_.begin()->first;
}

void HandOutTurns::want_serving_due(Tick now) {
  while (!serve_at_.empty() && serve_at_.begin()->first <= now) {
    Queue& queue = *serve_at_.begin()->second;
    forget_time(queue);
    want_serving(queue);
  }
}

void HandOutTurns::forget_deliveries(Queue& queue) {
  if (queue.is_held()) let_go(queue);
  if (std::exchange(queue.to_deliver, false)) std::erase(to_deliver_, &queue);
}

void HandOutTurns::check(const Queue& queue) const {
  DETENT_CHECK(std::ranges::count(to_serve_, &queue) == (queue.to_serve ? 1 : 0));
  DETENT_CHECK(std::ranges::count(to_deliver_, &queue) == (queue.to_deliver ? 1 : 0));
  const auto times = std::ranges::count(serve_at_, &queue, &std::pair<Tick, Queue*>::second);
  DETENT_CHECK(times == (queue.serve_at != 0 ? 1 : 0));
  std::size_t times_held = 0;
  for (const auto& [webhook, held] : held_) {
    DETENT_CHECK(!held.empty());
    for (const auto& [turn, one] : held) {
      if (one != &queue) continue;
      ++times_held;
      DETENT_CHECK(turn == queue.held_turn && !queue.to_deliver && queue.webhooks.empty());
      DETENT_CHECK(queue.record.settings.webhook && queue.record.settings.webhook->url == webhook);
    }
  }
  DETENT_CHECK(times_held == (queue.is_held() ? 1U : 0U));
  const bool is_held_back =
      queue.record.settings.paused || queue.awaits_a_lease() || queue.serve_at != 0;
  DETENT_CHECK(!queue.has_deliveries() || queue.to_deliver || queue.is_held() || is_held_back);
}

}  // namespace detent
