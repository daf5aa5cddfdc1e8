#include "engine/records/staging.h"

#include <utility>

#include "detent/check.h"

namespace detent {

Staging::Change& Staging::change_of(TaskId id, std::optional<Place> from) {
  const auto [it, is_new] = index_by_id_.try_emplace(id.value, changes_.size());
  if (is_new) {
    changes_.push_back(Change{.from = from, .to = std::nullopt});
    return changes_.back();
  }
  // A record that the turn has moved leaves the place to which it was moved. Otherwise the task
  // would be staged twice, from two places.
  Change& change = changes_[it->second];
  DETENT_CHECK(from == (change.to ? std::optional(change.to->place) : std::nullopt));
  return change;
}

void Staging::put(std::optional<Place> from, StoredTask to) {
  DETENT_CHECK(to.place.id == to.task.id && to.task.id.value != 0);
  DETENT_CHECK(!from || from->id == to.place.id);
  Change& change = change_of(to.place.id, from);
  change.to = std::move(to);
}

void Staging::erase(Place place) { change_of(place.id, place).to.reset(); }

const Staging::Change* Staging::find(TaskId id) const noexcept {
  const auto it = index_by_id_.find(id.value);
  return it == index_by_id_.end() ? nullptr : &changes_[it->second];
}

std::vector<TaskId> Staging::tasks_of(std::string_view queue) const {
  std::vector<TaskId> tasks;
  for (const Change& change : changes_) {
    if (change.to && change.to->task.queue == queue) tasks.push_back(change.to->place.id);
  }
  return tasks;
}

WriteBatch Staging::take() {
  DETENT_CHECK(changes_.size() == index_by_id_.size());
  WriteBatch batch;
  for (Change& change : changes_) {
    if (change.to) {
      batch.puts.push_back({.from = change.from, .to = *std::move(change.to)});
    } else if (change.from) {
      batch.erases.push_back(*change.from);
    }
  }
  changes_.clear();
  taken_.swap(index_by_id_);
  index_by_id_.clear();
  return batch;
}

}  // namespace detent
