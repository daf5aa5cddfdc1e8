// Keys of the RocksDB back end, and the values that name a place; docs/internals/storage-format.md
// defines them. The meta family's keys are in meta_keys.h, what it and the keys family hold in
// store/meta_format.h.
//
// Keys are big-endian, so that RocksDB's byte order is the order of the lanes and of ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"

namespace detent {

/// The key of a place in its family. In the due family 16 bytes: the instant, the id. In the lanes
/// family 25: lane, queue, priority, instant, id.
std::string place_key(const Place& place);
/// The first key in byte order that is after that of `place`.
std::string first_key_after(const Place& place);
/// Errors: data_loss, when it is no key of that family.
Result<Place> parse_due_key(std::string_view key);
Result<Place> parse_lane_key(std::string_view key);

/// 8 bytes: the id. Its value in the ids family is the rest of the place: 8 bytes in the due lane
/// (the instant), else 17 (lane, queue, priority, instant).
std::string id_key(TaskId id);
Result<TaskId> parse_id_key(std::string_view key);
std::string id_value(const Place& place);
Result<Place> parse_id_value(TaskId id, std::string_view value);

/// The value in the accepted family: the place, a check of it, the record. Appends to `value`.
void append_accepted(std::string& value, const Place& place, std::string_view record);
struct AcceptedValue {
  Place place;
  std::string_view record;  // points into the value
};
/// A value whose place can't be made out stands at the front of the due order, with all of its
/// bytes as the record: so it is met, and found to be damaged, when it is read.
AcceptedValue split_accepted(TaskId id, std::string_view value) noexcept;
Place front_place(TaskId id) noexcept;

/// In the key_expiry family the instant goes before the key_key() of the keys family.
std::string expiry_key(WallTime at, std::string_view key_key);
/// The instant and, as a view into it, the key in the keys family.
struct Expiry {
  WallTime at{};
  std::string_view key_key;
};
Result<Expiry> parse_expiry_key(std::string_view key);

}  // namespace detent
