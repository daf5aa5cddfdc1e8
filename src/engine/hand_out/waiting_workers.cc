#include "engine/hand_out/waiting_workers.h"

#include <utility>

#include "detent/check.h"

namespace detent {

void WaitingWorkers::add(WorkerWait wait, Tick until) {
  WorkerWait& kept = waits_.emplace();
  wait.index = kept.index;
  kept = std::move(wait);
  const bool is_new = by_id_.emplace(kept.id, &kept).second;
  DETENT_CHECK(is_new);
  wheel_.schedule(kept.index, until);
  std::erase_if(kept.queues,
                [&](Queue* queue) { return !queue->waits.emplace(kept.id, &kept).second; });
  DETENT_CHECK(!kept.queues.empty());
}

WorkerWait* WaitingWorkers::find(WaitId id) const noexcept {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

WorkerWait WaitingWorkers::take(WorkerWait& wait) {
  WorkerWait taken = std::move(wait);
  wheel_.cancel(taken.index);
  std::size_t erased = by_id_.erase(taken.id);
  DETENT_CHECK(erased == 1);
  waits_.erase(taken.index);
  for (Queue* const queue : taken.queues) {
    erased = queue->waits.erase(taken.id);
    DETENT_CHECK(erased == 1);
  }
  return taken;
}

std::vector<WaitId> WaitingWorkers::expired(Tick now, std::size_t limit) {
  std::vector<WaitId> names;
  const auto note = [&](std::uint32_t index) { names.push_back(waits_[index].id); };
  wheel_.advance(now, note, limit);
  return names;
}

std::vector<WaitId> WaitingWorkers::all() const {
  std::vector<WaitId> names;
  waits_.for_each([&](const WorkerWait& wait) { names.push_back(wait.id); });
  return names;
}

void WaitingWorkers::check_invariants() const {
  waits_.check_invariants();
  wheel_.check_invariants();
  DETENT_CHECK(waits_.size() == wheel_.size() && waits_.size() == by_id_.size());
}

}  // namespace detent
