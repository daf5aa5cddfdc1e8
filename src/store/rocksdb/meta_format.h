// Values of the meta and keys families; docs/internals/storage-format.md defines them. Each is
// sealed with a checksum over its key and its bytes.
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
inline constexpr std::string_view kLowWaterKey = "low_water";  // its value is a place in due order
inline constexpr std::string_view kSettledToKey = "settled_to";
inline constexpr std::string_view kDueSumsKey = "due_sums";

/// A value for these bytes, and the bytes of a value. Errors: data_loss, with the key in the
/// message.
std::string meta_value(std::string_view key, std::string bytes);
Result<std::string_view> parse_meta_value(std::string_view key, std::string_view value);

/// The bytes of a number in the meta family.
std::string number_bytes(std::uint64_t number);
Result<std::uint64_t> parse_number_bytes(std::string_view bytes);

/// The keys of queue records lie between these two.
inline constexpr std::string_view kQueuePrefix = "q/";
inline constexpr std::string_view kQueueEnd = "q0";  // '0' follows '/'
std::string queue_key(std::string_view queue);
std::string queue_value(std::string_view key, const QueueRecord& record);
/// Requires: `key` starts with kQueuePrefix.
Result<QueueRecord> parse_queue(std::string_view key, std::string_view value);

/// The keys of schedules lie between these two; their values are those of schedule_format.h, sealed
/// to the name instead of the key.
inline constexpr std::string_view kSchedulePrefix = "s/";
inline constexpr std::string_view kScheduleEnd = "s0";
std::string schedule_key(std::string_view name);
/// Requires: `key` starts with kSchedulePrefix.
Result<ScheduleRecord> parse_schedule(std::string_view key, std::string_view value);

/// The keys of changes to the due counts lie between these two, by number.
inline constexpr std::string_view kCountsPrefix = "counts/";
inline constexpr std::string_view kCountsEnd = "counts0";
std::string counts_key(std::uint64_t number);

/// Values of the keys family. `key` is a key_key().
std::string key_value(std::string_view key, const KeyRecord& record);
Result<KeyRecord> parse_key_value(std::string_view key, std::string_view value);

}  // namespace detent
