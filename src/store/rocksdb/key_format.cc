#include "store/rocksdb/key_format.h"

#include <utility>

#include "base/bytes.h"
#include "store/record_format.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

Error in_key(std::string_view key, Error error) {
  return with_context("read \"" + std::string(key) + "\"", std::move(error));
}

Result<QueueCounts> read_counts(std::string_view key, std::string_view value) {
  ASSIGN_OR_RETURN(const std::string_view bytes, unseal(value, key));
  ByteReader reader(bytes);
  QueueCounts counts;
  counts.queue = key.substr(kQueuePrefix.size());
  ASSIGN_OR_RETURN(counts.waiting, reader.varint());
  ASSIGN_OR_RETURN(counts.dead, reader.varint());
  TRY(reader.expect_end());
  return counts;
}

}  // namespace

std::string due_key(DueKey place) {
  std::string key;
  key.reserve(16);
  ByteWriter writer(key);
  writer.key_i64(place.at.time_since_epoch().count());
  writer.key_u64(place.id.value);
  return key;
}

Result<DueKey> parse_due_key(std::string_view key) {
  ByteReader reader(key);
  ASSIGN_OR_RETURN(const std::int64_t at, reader.key_i64());
  ASSIGN_OR_RETURN(const std::uint64_t id, reader.key_u64());
  TRY(reader.expect_end());
  return DueKey{WallTime{milliseconds{at}}, TaskId{id}};
}

std::string id_key(TaskId id) {
  std::string key;
  ByteWriter(key).key_u64(id.value);
  return key;
}

std::string id_value(WallTime at) {
  std::string value;
  ByteWriter(value).key_i64(at.time_since_epoch().count());
  return value;
}

Result<WallTime> parse_id_value(std::string_view value) {
  ByteReader reader(value);
  ASSIGN_OR_RETURN(const std::int64_t at, reader.key_i64());
  TRY(reader.expect_end());
  return WallTime{milliseconds{at}};
}

std::string meta_value(std::string_view key, std::string bytes) {
  seal(bytes, key);
  return bytes;
}

Result<std::string_view> parse_meta_value(std::string_view key, std::string_view value) {
  Result<std::string_view> bytes = unseal(value, key);
  if (bytes) return bytes;
  return in_key(key, std::move(bytes).error());
}

std::string number_bytes(std::uint64_t number) {
  std::string bytes;
  ByteWriter(bytes).u64(number);
  return bytes;
}

Result<std::uint64_t> parse_number_bytes(std::string_view bytes) {
  ByteReader reader(bytes);
  ASSIGN_OR_RETURN(const std::uint64_t number, reader.u64());
  TRY(reader.expect_end());
  return number;
}

std::string counts_key(std::string_view queue) { return std::string(kQueuePrefix).append(queue); }

std::string counts_value(std::string_view key, const QueueCounts& counts) {
  std::string value;
  ByteWriter writer(value);
  writer.varint(counts.waiting);
  writer.varint(counts.dead);
  return meta_value(key, std::move(value));
}

Result<QueueCounts> parse_counts(std::string_view key, std::string_view value) {
  Result<QueueCounts> counts = read_counts(key, value);
  if (counts) return counts;
  return in_key(key, std::move(counts).error());
}

}  // namespace detent
