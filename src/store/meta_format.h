// The formats of small values that the back ends on disk share: numbers, queue records and key
// records. docs/internals/storage-format.md defines them. Each value is sealed with a checksum over
// its key and its bytes. The keys in RocksDB's meta family are defined in rocksdb/meta_keys.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"

namespace detent {

/// meta_value() seals bytes for a key. parse_meta_value() checks the seal and returns the bytes.
/// Errors: data_loss, with the key in the message.
std::string meta_value(std::string_view key, std::string bytes);
Result<std::string_view> parse_meta_value(std::string_view key, std::string_view value);

/// A number as the bytes of a value, and back. Errors: data_loss.
std::string number_bytes(std::uint64_t number);
Result<std::uint64_t> parse_number_bytes(std::string_view bytes);

/// The key of a queue record is this prefix and the name of the queue.
inline constexpr std::string_view kQueuePrefix = "q/";
std::string queue_key(std::string_view queue);
std::string queue_value(std::string_view key, const QueueRecord& record);
/// Requires: `key` starts with kQueuePrefix.
Result<QueueRecord> parse_queue(std::string_view key, std::string_view value);

/// The storage key of a key record: the number of the queue, then the client's key. It sorts by
/// number, then by the bytes of the client's key.
std::string key_key(std::uint32_t queue, std::string_view key);
/// In both functions, `key` is a result of key_key().
std::string key_value(std::string_view key, const KeyRecord& record);
Result<KeyRecord> parse_key_value(std::string_view key, std::string_view value);
/// Parses a key record and adds it to a page of at most `limit` keys. A record that cannot be
/// parsed is added as damaged. Requires: the page is not full.
void add_key_to_page(KeyPage& page, std::size_t limit, std::string_view key,
                     std::string_view value);

}  // namespace detent
