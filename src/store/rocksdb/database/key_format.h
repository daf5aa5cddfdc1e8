// The keys of tasks in RocksDB, and the values that contain a place.
// docs/internals/storage-format.md defines both. The keys of the meta column family are in
// meta_keys.h. The values of the meta and keys column families are in store/meta_format.h.
//
// The numbers in keys are big-endian. RocksDB sorts keys by bytes, so records are sorted by id, or
// as their lane requires.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"

namespace detent {

/// Returns the key of a settled record. In the due family: instant and id, 16 bytes. In the lanes
/// family: lane, queue, priority, instant and id, 25 bytes.
std::string place_key(const Place& place);
/// Returns the smallest key that is greater than the key of `place`.
std::string first_key_after(const Place& place);
/// Parse a key of the due family, or of the lanes family. Errors: data_loss if the key has another
/// form.
Result<Place> parse_due_key(std::string_view key);
Result<Place> parse_lane_key(std::string_view key);

/// Returns the key of a task in the accepted and ids families: the id, 8 bytes.
std::string id_key(TaskId id);
Result<TaskId> parse_id_key(std::string_view key);
/// Returns the value in the ids family: the place without the id. This is the instant (8 bytes) for
/// a task in the due lane. For other lanes it is lane, queue, priority and instant (17 bytes).
std::string id_value(const Place& place);
Result<Place> parse_id_value(TaskId id, std::string_view value);

/// Appends a value of the accepted family to `value`: the place without the id, a checksum of the
/// place, and the record.
void append_accepted(std::string& value, const Place& place, std::string_view record);
struct AcceptedValue {
  Place place;
  std::string_view record;  // points into the value
};
/// Splits a value of the accepted family. If the place is damaged, returns the front place and the
/// whole value as the record. The task then comes first in the due order, and its record cannot be
/// decoded. So the next read of the due order reports the damage.
AcceptedValue split_accepted(TaskId id, std::string_view value) noexcept;
/// Returns a place at instant 0 in the due lane. Only damaged tasks are at this instant.
Place front_place(TaskId id) noexcept;

/// Returns a key of the key_expiry family: the instant, then `key_key`, which is the key in the
/// keys family.
std::string expiry_key(WallTime at, std::string_view key_key);
/// A parsed key of the key_expiry family.
struct Expiry {
  WallTime at{};
  std::string_view key_key;  // points into the parsed key
};
Result<Expiry> parse_expiry_key(std::string_view key);

}  // namespace detent
