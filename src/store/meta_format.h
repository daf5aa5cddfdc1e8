// Small values that back ends on disk have in common: numbers, queue records, keys;
// docs/internals/storage-format.md defines them. Each is sealed with a checksum over its key and
// its bytes. What RocksDB's meta family is keyed by is in rocksdb/meta_keys.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"

namespace detent {

/// A value for these bytes, and the bytes of a value. Errors: data_loss, with the key in the
/// message.
std::string meta_value(std::string_view key, std::string bytes);
Result<std::string_view> parse_meta_value(std::string_view key, std::string_view value);

/// The bytes of a number that is such a value.
std::string number_bytes(std::uint64_t number);
Result<std::uint64_t> parse_number_bytes(std::string_view bytes);

/// What the key of a queue record begins with; the queue's name follows.
inline constexpr std::string_view kQueuePrefix = "q/";
std::string queue_key(std::string_view queue);
std::string queue_value(std::string_view key, const QueueRecord& record);
/// Requires: `key` starts with kQueuePrefix.
Result<QueueRecord> parse_queue(std::string_view key, std::string_view value);

/// What a key record is kept under: the queue's number, the key. Sorted by both.
std::string key_key(std::uint32_t queue, std::string_view key);
/// `key` is a key_key().
std::string key_value(std::string_view key, const KeyRecord& record);
Result<KeyRecord> parse_key_value(std::string_view key, std::string_view value);
/// Adds it to a page of at most `limit` keys. Requires: the page is not full.
void add_key_to_page(KeyPage& page, std::size_t limit, std::string_view key,
                     std::string_view value);

}  // namespace detent
