// The keys of the meta column family. docs/internals/storage-format.md defines them. The values are
// in store/meta_format.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"

namespace detent {

inline constexpr std::string_view kFormatKey = "format";
inline constexpr std::string_view kLastIdKey = "last_id";
inline constexpr std::string_view kLastQueueNumberKey = "last_queue_number";
inline constexpr std::string_view kEpochKey = "epoch";
inline constexpr std::string_view kLowWatermarkKey = "low_water";  // its value is a key of `due`
inline constexpr std::string_view kSettledToKey = "settled_to";
inline constexpr std::string_view kIdentityKey = "identity";  // only of a restored backup
inline constexpr std::string_view kDueSumsKey = "due_sums";

/// The keys of queue records are in [kQueuePrefix, kQueueEnd).
inline constexpr std::string_view kQueueEnd = "q0";  // '0' is the byte after '/'

/// The keys of schedules are in [kSchedulePrefix, kScheduleEnd). store/schedule_format.h defines
/// their values. The checksum in such a value covers the schedule's name, not the whole key.
inline constexpr std::string_view kSchedulePrefix = "s/";
inline constexpr std::string_view kScheduleEnd = "s0";
std::string schedule_key(std::string_view name);
/// Requires: `key` starts with kSchedulePrefix.
Result<ScheduleRecord> parse_schedule(std::string_view key, std::string_view value);

/// The keys of changes to the due counts (due_sums.h) are in [kCountsPrefix, kCountsEnd), sorted by
/// number.
inline constexpr std::string_view kCountsPrefix = "counts/";
inline constexpr std::string_view kCountsEnd = "counts0";
std::string counts_key(std::uint64_t number);

}  // namespace detent
