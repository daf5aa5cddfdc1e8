// Damages a closed data folder, for tests of how the store then behaves. If a function here fails,
// the test is wrong, and the process stops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "store/store.h"

namespace detent {

/// A key of a queue.
struct KeyName {
  std::uint32_t queue = 0;  // the queue's number
  std::string key;
};

/// Flips one bit of the record at `place`, accepted or settled. `bit` is taken modulo the number of
/// bits of the record. RocksDB writes the changed record with valid checksums, as after a memory
/// fault or a bug.
void flip_stored_bit(const std::string& folder, const Place& place, std::size_t bit);
/// Does the same to the record of a schedule.
void flip_stored_schedule_bit(const std::string& folder, const std::string& name, std::size_t bit);
/// Does the same to the record of a queue's key.
void flip_stored_key_bit(const std::string& folder, const KeyName& key, std::size_t bit);
/// Removes a key from the order in which keys expire.
void drop_stored_expiry(const std::string& folder, const KeyName& key, WallTime expires_at);
/// Flips one bit of the place and its checksum in the value of an accepted task.
void flip_accepted_place_bit(const std::string& folder, TaskId id, std::size_t bit);
/// Flips one bit in the first half of the data of a family's largest table, like a fault of the
/// disk. RocksDB's checksum of that block then fails. Requires: the family has a table.
void spoil_table(const std::string& folder, const std::string& family);
/// Removes the settled record at `place`, but not its entry in the index by id.
void drop_stored_record(const std::string& folder, const Place& place);
std::uint64_t stored_format(const std::string& folder);
void set_stored_format(const std::string& folder, std::uint64_t version);
/// Overwrites the value of a key in the meta family with invalid bytes.
void spoil_stored_meta(const std::string& folder, const std::string& key);
void remove_stored_meta(const std::string& folder, const std::string& key);
/// Adds a column family that this version does not know.
void add_unknown_family(const std::string& folder);

}  // namespace detent
