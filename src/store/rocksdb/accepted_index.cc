#include "store/rocksdb/accepted_index.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "detent/check.h"

namespace detent {

namespace {

// A tail of this length is sorted immediately, so that a later reader does not have to sort many
// entries.
constexpr std::size_t kMaxTail = 8'192;
// Cleaning starts only if more entries or slots than this do not count.
constexpr std::size_t kMaxStale = 1'024;

Place due_place(std::int64_t at, TaskId id) noexcept {
  return {.lane = Lane::due,
          .queue = 0,
          .priority = 0,
          .at = WallTime{std::chrono::milliseconds{at}},
          .id = id};
}

}  // namespace

void AcceptedIndex::put(const Place& place) {
  DETENT_CHECK(place.id.value != 0);
  Slot& slot = slot_for(place.id);
  if (place.lane != Lane::due) {
    leave(slot);
    slot.at = kElsewhere;
    elsewhere_.emplace(place.id, place);
    other_lanes_.insert(place);
    DETENT_CHECK(elsewhere_.size() == other_lanes_.size());
    return;
  }
  const std::int64_t at = place.at.time_since_epoch().count();
  DETENT_CHECK(at >= 0);
  if (slot.at == at) return;
  leave(slot);
  slot.at = at;
  ++due_count_;
  tail_.push_back({at, place.id});
  if (tail_.size() >= kMaxTail) sort_tail();
  if (entry_count() > 2 * due_count_ + kMaxStale) clean();
}

void AcceptedIndex::erase(TaskId id) {
  if (Slot* const slot = slot_of(id)) leave(*slot);
  if (slots_.size() > 2 * size() + kMaxStale) {
    std::erase_if(slots_, [](const Slot& slot) { return slot.at == kGone; });
  }
  if (entry_count() > 2 * due_count_ + kMaxStale) clean();
}

/// Takes the task out of its lane. Its slot stays, with kGone.
void AcceptedIndex::leave(Slot& slot) {
  if (slot.at == kElsewhere) {
    const auto found = elsewhere_.find(slot.id);
    DETENT_CHECK(found != elsewhere_.end());
    other_lanes_.erase(found->second);
    elsewhere_.erase(found);
    DETENT_CHECK(elsewhere_.size() == other_lanes_.size());
  } else if (slot.at != kGone) {
    DETENT_CHECK(due_count_ > 0);
    --due_count_;
  }
  slot.at = kGone;
  pass_gone();
}

/// Moves the start of each run past the entries that do not count. Tasks usually leave at the front
/// of the due order, so each call passes few entries. Without this, the next read would pass all of
/// them.
void AcceptedIndex::pass_gone() {
  for (Run& run : runs_) {
    while (run.left() > 0 && !counts(*run.begin())) ++run.first;
  }
}

void AcceptedIndex::drop_through(TaskId id) {
  const auto end = std::upper_bound(slots_.begin(), slots_.end(), id,
                                    [](TaskId a, const Slot& b) { return a < b.id; });
  for (auto slot = slots_.begin(); slot != end; ++slot) leave(*slot);
  slots_.erase(slots_.begin(), end);
  slots_.shrink_to_fit();
  clean();
}

std::optional<Place> AcceptedIndex::find(TaskId id) const {
  const Slot* const slot = slot_of(id);
  if (slot == nullptr || slot->at == kGone) return std::nullopt;
  if (slot->at == kElsewhere) return elsewhere_.at(id);
  return due_place(slot->at, id);
}

std::vector<Place> AcceptedIndex::read(const Place& after, const Place& until, std::size_t limit) {
  DETENT_CHECK(after.lane == until.lane && after.queue == until.queue);
  if (after.lane == Lane::due) {
    return read_due({after.at.time_since_epoch().count(), after.id},
                    {until.at.time_since_epoch().count(), until.id}, limit);
  }
  std::vector<Place> places;
  for (auto at = other_lanes_.upper_bound(after);
       at != other_lanes_.end() && *at <= until && places.size() < limit; ++at) {
    places.push_back(*at);
  }
  return places;
}

std::vector<Place> AcceptedIndex::read_due(const Entry& after, const Entry& until,
                                           std::size_t limit) {
  sort_tail();
  pass_gone();
  // The part of each run that is not read yet.
  std::vector<std::pair<const Entry*, const Entry*>> parts;
  for (const Run& run : runs_) {
    parts.emplace_back(std::upper_bound(run.begin(), run.end(), after),
                       std::upper_bound(run.begin(), run.end(), until));
  }
  std::vector<Place> places;
  Entry last;
  while (places.size() < limit) {
    auto* least = static_cast<std::pair<const Entry*, const Entry*>*>(nullptr);
    for (auto& part : parts) {
      if (part.first >= part.second) continue;
      if (least == nullptr || *part.first < *least->first) least = &part;
    }
    if (least == nullptr) break;
    const Entry entry = *least->first++;
    DETENT_CHECK(places.empty() || last <= entry);
    // If a task left an instant and came back to it, there are two equal entries.
    if (!counts(entry) || (!places.empty() && entry == last)) continue;
    places.push_back(due_place(entry.at, entry.id));
    last = entry;
  }
  return places;
}

std::vector<Place> AcceptedIndex::read_by_id(TaskId after, std::size_t limit) const {
  std::vector<Place> places;
  auto slot = std::upper_bound(slots_.begin(), slots_.end(), after,
                               [](TaskId a, const Slot& b) { return a < b.id; });
  for (; slot != slots_.end() && places.size() < limit; ++slot) {
    if (slot->at == kGone) continue;
    places.push_back(slot->at == kElsewhere ? elsewhere_.at(slot->id)
                                            : due_place(slot->at, slot->id));
  }
  return places;
}

const AcceptedIndex::Slot* AcceptedIndex::slot_of(TaskId id) const noexcept {
  if (slots_.empty() || id < slots_.front().id || id > slots_.back().id) return nullptr;
  const std::size_t guess = (id.value - slots_.front().id.value) >> TaskId::kShardBits;
  if (guess < slots_.size() && slots_[guess].id == id) return &slots_[guess];
  const auto slot = std::lower_bound(slots_.begin(), slots_.end(), id,
                                     [](const Slot& a, TaskId b) { return a.id < b; });
  return slot->id == id ? &*slot : nullptr;
}

AcceptedIndex::Slot* AcceptedIndex::slot_of(TaskId id) noexcept {
  const Slot* const slot = std::as_const(*this).slot_of(id);
  return slot == nullptr ? nullptr : &slots_[static_cast<std::size_t>(slot - slots_.data())];
}

/// Returns the slot of `id`. Creates it if necessary.
AcceptedIndex::Slot& AcceptedIndex::slot_for(TaskId id) {
  if (slots_.empty() || slots_.back().id < id) return slots_.emplace_back(Slot{id, kGone});
  if (Slot* const slot = slot_of(id)) return *slot;
  const auto next = std::lower_bound(slots_.begin(), slots_.end(), id,
                                     [](const Slot& a, TaskId b) { return a.id < b; });
  return *slots_.insert(next, Slot{id, kGone});
}

/// Returns true if the task is in the due lane at this instant.
bool AcceptedIndex::counts(const Entry& entry) const noexcept {
  const Slot* const slot = slot_of(entry.id);
  return slot != nullptr && slot->at == entry.at;
}

std::size_t AcceptedIndex::entry_count() const noexcept {
  std::size_t count = tail_.size();
  for (const Run& run : runs_) count += run.left();
  return count;
}

/// Merges all entries that count into one run, and drops the others.
void AcceptedIndex::clean() {
  sort_tail();
  for (Run& run : runs_) {
    std::erase_if(run.entries, [this](const Entry& entry) { return !counts(entry); });
    run.first = 0;
  }
  while (runs_.size() >= 2) merge_last_two();
  if (runs_.empty()) return;
  std::vector<Entry>& all = runs_.front().entries;
  all.erase(std::unique(all.begin(), all.end()), all.end());
  all.shrink_to_fit();
}

void AcceptedIndex::sort_tail() {
  if (tail_.empty()) return;
  std::sort(tail_.begin(), tail_.end());
  runs_.push_back({tail_, 0});
  tail_.clear();
  while (runs_.size() >= 2 && runs_[runs_.size() - 2].left() < 2 * runs_.back().left()) {
    merge_last_two();
  }
}

void AcceptedIndex::merge_last_two() {
  DETENT_CHECK(runs_.size() >= 2);
  const Run shorter = std::move(runs_.back());
  runs_.pop_back();
  Run& longer = runs_.back();
  std::vector<Entry> merged;
  merged.reserve(longer.left() + shorter.left());
  std::merge(longer.begin(), longer.end(), shorter.begin(), shorter.end(),
             std::back_inserter(merged));
  DETENT_CHECK(merged.size() == longer.left() + shorter.left());
  longer = {std::move(merged), 0};
}

void AcceptedIndex::check_invariants() const {
  std::set<Entry> entries(tail_.begin(), tail_.end());
  for (const Run& run : runs_) {
    DETENT_CHECK(std::is_sorted(run.entries.begin(), run.entries.end()));
    entries.insert(run.begin(), run.end());
  }
  std::size_t due = 0;
  std::size_t elsewhere = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    DETENT_CHECK(i == 0 || slots_[i - 1].id < slot.id);
    if (slot.at == kElsewhere) {
      ++elsewhere;
      DETENT_CHECK(other_lanes_.count(elsewhere_.at(slot.id)) == 1);
    } else if (slot.at != kGone) {
      ++due;
      DETENT_CHECK(entries.count({slot.at, slot.id}) == 1);
    }
  }
  DETENT_CHECK(due == due_count_);
  DETENT_CHECK(elsewhere == elsewhere_.size() && elsewhere == other_lanes_.size());
}

}  // namespace detent
