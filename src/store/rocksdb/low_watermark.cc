#include "store/rocksdb/low_watermark.h"

#include <algorithm>

#include "detent/check.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/meta_keys.h"
#include "store/rocksdb/database/range_scan.h"

namespace detent {

namespace {

constexpr std::size_t kRemovalsARaise = 1'000;
// If one old task stays at the front, the tombstones of any number of tasks can lie behind it. A
// raise gives up after this many tombstones (a few milliseconds). Then it waits for
// kRemovalsAfterGivingUp removals, so that a compaction can delete the tombstones.
constexpr std::uint64_t kMostTombstones = 20'000;
constexpr std::size_t kRemovalsAfterGivingUp = 100'000;
// One raise passes at most this many entries of a settle that does not count yet, at about 1 µs
// each. The next removal continues the raise.
constexpr std::size_t kMostPassed = 5'000;

/// Returns the greatest place that is less than `place`. Requires: an id greater than 0.
Place before(Place place) noexcept {
  --place.id.value;
  return place;
}

}  // namespace

Result<LowWatermark> LowWatermark::read(OpenDb& db) {
  LowWatermark mark;
  mark.removals_until_raise_ = kRemovalsARaise;
  ASSIGN_OR_RETURN(const auto key, db.read_meta(kLowWatermarkKey));
  if (!key) return mark;
  const Result<Place> place = parse_due_key(*key);
  if (!place) return db.damaged(place.error().message);
  mark.place_ = *place;
  mark.stored_ = mark.place_;
  return mark;
}

void LowWatermark::put(const Place& place) noexcept {
  DETENT_CHECK(place.lane == Lane::due && place.id.value > 0);
  place_ = std::min(place_, before(place));
}

void LowWatermark::removed(std::size_t count, OpenDb& db, TaskId settled_to) {
  removals_until_raise_ -= std::min(count, removals_until_raise_);
  if (removals_until_raise_ == 0) raise(db, settled_to);
}

void LowWatermark::raise(OpenDb& db, TaskId settled_to) {
  rocksdb::ReadOptions options;
  options.max_skippable_internal_keys = kMostTombstones;
  RangeScan scan(db.db(), db.due(), {.begin = place_key(place_)}, options);
  removals_until_raise_ = kRemovalsARaise;
  std::size_t passed = 0;
  for (; scan.is_valid(); scan.next()) {
    const Result<Place> place = parse_due_key(scan.key());
    // A malformed key. It stays in place, so that reading a page reports it.
    if (!place) return;
    if (place->id <= settled_to) {
      place_ = std::max(place_, before(*place));
      return;
    }
    place_ = std::max(place_, *place);
    if (++passed == kMostPassed) {
      removals_until_raise_ = 1;
      return;
    }
  }
  if (scan.status().ok()) {
    place_ = end_of(Lane::due);
  } else {
    removals_until_raise_ = kRemovalsAfterGivingUp;
  }
}

}  // namespace detent
