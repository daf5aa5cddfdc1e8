// Hand-outs during other work: between commands, and while a batch is written. hand_out_now.cc
// decides which tasks can be handed out then.
#include <algorithm>
#include <optional>

#include "engine/engine.h"

namespace detent {
namespace {

/// If no task is due within this time, a write on another thread is not worth its cost, unless the
/// disk is very slow.
constexpr Tick kSoon = 100;

}  // namespace

void Engine::hand_out_due() {
  if (stopped_by() || !has_waits()) return;
  // Tasks become due only when a tick begins, and this tick was already served.
  if (hand_out_.served_at() == time_.now()) return;
  catch_up();
  hand_out_.serve_now();
}

bool Engine::is_due_soon() const {
  const std::optional<Tick> next = tasks_.timers().next_wakeup();
  return turns_.has_to_serve() || (next && *next <= time_.now() + kSoon);
}

/// Hands out due tasks until `written` is rung.
void Engine::hand_out_until(Doorbell& written) {
  for (bool is_written = false; !is_written;) {
    hand_out_due();
    std::optional<Tick> next = tasks_.timers().next_wakeup();
    const Tick soonest = time_.now() + 1;
    if (turns_.has_to_serve() || (next && *next < soonest)) next = soonest;
    is_written = clock_.wait(written, next ? std::optional(time_.when(*next)) : std::nullopt);
  }
}

}  // namespace detent
