// Keys and small values of the RocksDB back end; docs/internals/storage-format.md defines them.
//
// Keys are big-endian, so that RocksDB's byte order is the due order and the order of ids. Values
// of the meta family are sealed with a checksum over key and value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"

namespace detent {

/// 16 bytes: the instant, the id.
std::string due_key(DueKey place);
Result<DueKey> parse_due_key(std::string_view key);

/// 8 bytes: the id. Its value is the instant of the task's place.
std::string id_key(TaskId id);
std::string id_value(WallTime at);
Result<WallTime> parse_id_value(std::string_view value);

inline constexpr std::string_view kFormatKey = "format";
inline constexpr std::string_view kLastIdKey = "last_id";
inline constexpr std::string_view kEpochKey = "epoch";
inline constexpr std::string_view kLowWaterKey = "low_water";  // its value is a place, as due_key()

/// A value of the meta family for these bytes, and the bytes of a value. Errors: data_loss, with
/// the key in the message.
std::string meta_value(std::string_view key, std::string bytes);
Result<std::string_view> parse_meta_value(std::string_view key, std::string_view value);

/// The bytes of a number in the meta family.
std::string number_bytes(std::uint64_t number);
Result<std::uint64_t> parse_number_bytes(std::string_view bytes);

/// The keys of queue counts lie between these two.
inline constexpr std::string_view kQueuePrefix = "queue/";
inline constexpr std::string_view kQueueEnd = "queue0";  // '0' follows '/'
std::string counts_key(std::string_view queue);
std::string counts_value(std::string_view key, const QueueCounts& counts);
/// Requires: `key` starts with kQueuePrefix.
Result<QueueCounts> parse_counts(std::string_view key, std::string_view value);

}  // namespace detent
