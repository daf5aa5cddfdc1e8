// Changes a closed data folder behind the store's back, for tests of what the store then does. A
// failure here is a broken test and stops the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "store/store.h"

namespace detent {

struct KeyName {
  std::uint32_t queue = 0;  // its number
  std::string key;
};

/// Flips one bit (modulo the length) of the record at `place`, accepted or settled, under RocksDB's
/// own checksums: as a fault in memory or a bug would.
void flip_stored_bit(const std::string& folder, const Place& place, std::size_t bit);
/// The same of a schedule's record.
void flip_stored_schedule_bit(const std::string& folder, const std::string& name, std::size_t bit);
/// The same of the record of a queue's key.
void flip_stored_key_bit(const std::string& folder, const KeyName& key, std::size_t bit);
/// Takes a key out of the order in which keys expire.
void drop_stored_expiry(const std::string& folder, const KeyName& key, WallTime expires_at);
/// The same among the bytes that say where an accepted record lies.
void flip_accepted_place_bit(const std::string& folder, TaskId id, std::size_t bit);
/// Flips one bit in the first half of what the largest table of a family holds, as a fault of the
/// disk would: RocksDB's own checksum refuses the block that has it. Requires: the family has a
/// table.
void spoil_table(const std::string& folder, const std::string& family);
/// Removes the settled record at `place` and leaves the index entry of its id.
void drop_stored_record(const std::string& folder, const Place& place);
std::uint64_t stored_format(const std::string& folder);
void set_stored_format(const std::string& folder, std::uint64_t version);
/// Overwrites the value of a key of the meta family with bytes that are no value.
void spoil_stored_meta(const std::string& folder, const std::string& key);
void remove_stored_meta(const std::string& folder, const std::string& key);
/// As a later version might.
void add_unknown_family(const std::string& folder);

}  // namespace detent
