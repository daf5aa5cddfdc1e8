// The invariants of the load window, for tests and for the engine's own check.
#include <algorithm>

#include "detent/check.h"
#include "engine/window/load_window.h"

namespace detent {

bool LoadWindow::check(const StoredTask& stored) const {
  const Place& place = stored.place;
  const LoadedTask* const loaded = parts_.tasks.find_loaded(stored.task.id);
  const bool is_loaded = loaded != nullptr;
  Queue& queue = parts_.queues.queue_of(stored.task.queue);
  switch (place.lane) {
    case Lane::due:
      DETENT_CHECK(stored.task.standing == Standing::live);
      DETENT_CHECK(is_loaded ? place <= loaded_to_ : place > loaded_to_ || place > queue.cut_to);
      break;
    case Lane::ready:
      DETENT_CHECK(stored.task.standing == Standing::live);
      DETENT_CHECK(place.queue == queue.ready_of(stored.task).lane);
      DETENT_CHECK(place.at == stored.task.due_at && place.priority == stored.task.rules.priority);
      DETENT_CHECK(is_loaded || place > queue.ready_of(stored.task).head_to);
      break;
    case Lane::ended:
      DETENT_CHECK(place > parts_.records.forgotten_to());
      [[fallthrough]];
    case Lane::dead:
      DETENT_CHECK(!is_loaded && stored.task.standing != Standing::live);
      break;
  }
  if (!is_loaded) return false;
  DETENT_CHECK(loaded->place == place && loaded->due_at == stored.task.due_at);
  DETENT_CHECK(loaded->payload_bytes == stored.task.payload.data.size());
  DETENT_CHECK(loaded->has_webhook != stored.task.webhook.empty());
  return true;
}

void LoadWindow::check(const Queue& queue) const {
  DETENT_CHECK(std::ranges::count(cut_queues_, &queue) == (queue.is_cut() ? 1 : 0));
  DETENT_CHECK(!queue.is_cut() || queue.cut_to < loaded_to_);
}

}  // namespace detent
