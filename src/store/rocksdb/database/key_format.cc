#include "store/rocksdb/database/key_format.h"

#include <array>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "detent/check.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kCheckBytes = 2;

Error malformed(std::string_view what) { return {ErrorCode::data_loss, std::string(what), ""}; }

Result<WallTime> read_instant(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::int64_t at, reader.key_i64());
  return WallTime{milliseconds{at}};
}

void write_instant(ByteWriter& writer, WallTime at) {
  writer.key_i64(at.time_since_epoch().count());
}

/// Writes the part of a key that precedes the instant in all lanes except `due`.
void write_lane(ByteWriter& writer, const Place& place) {
  writer.key_u8(static_cast<std::uint8_t>(place.lane));
  writer.key_u32(place.queue);
  writer.key_u32(place.priority);
}

Result<Place> read_lane(ByteReader& reader) {
  ASSIGN_OR_RETURN(const unsigned lane, reader.key_u8());
  if (lane == 0 || lane > static_cast<unsigned>(Lane::ended)) {
    return malformed("unknown lane " + std::to_string(lane));
  }
  Place place;
  place.lane = static_cast<Lane>(lane);
  ASSIGN_OR_RETURN(place.queue, reader.key_u32());
  ASSIGN_OR_RETURN(place.priority, reader.key_u32());
  return place;
}

// The size of a place without the id, as in a value of the ids family. A value of the accepted
// family also has a lane byte before a place in the due lane.
constexpr std::size_t kDuePlaceBytes = 8;
constexpr std::size_t kLanePlaceBytes = 17;

/// Returns the checksum of an accepted place. It covers the id too, so a value under the key of
/// another task is found to be damaged.
std::uint16_t check_of(TaskId id, std::string_view place) noexcept {
  std::array<char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>((id.value >> (8 * i)) & 0xFFu);
  }
  return static_cast<std::uint16_t>(crc32c(place, crc32c({bytes.data(), bytes.size()})));
}

}  // namespace

std::string place_key(const Place& place) {
  std::string key;
  key.reserve(26);
  ByteWriter writer(key);
  if (place.lane != Lane::due) write_lane(writer, place);
  write_instant(writer, place.at);
  writer.key_u64(place.id.value);
  return key;
}

std::string first_key_after(const Place& place) { return place_key(place).append(1, '\0'); }

Result<Place> parse_due_key(std::string_view key) {
  ByteReader reader(key);
  Place place;
  ASSIGN_OR_RETURN(place.at, read_instant(reader));
  ASSIGN_OR_RETURN(place.id.value, reader.key_u64());
  TRY(reader.expect_end());
  return place;
}

Result<Place> parse_lane_key(std::string_view key) {
  ByteReader reader(key);
  ASSIGN_OR_RETURN(Place place, read_lane(reader));
  ASSIGN_OR_RETURN(place.at, read_instant(reader));
  ASSIGN_OR_RETURN(place.id.value, reader.key_u64());
  TRY(reader.expect_end());
  return place;
}

std::string id_key(TaskId id) {
  std::string key;
  ByteWriter(key).key_u64(id.value);
  return key;
}

Result<TaskId> parse_id_key(std::string_view key) {
  ByteReader reader(key);
  ASSIGN_OR_RETURN(const std::uint64_t id, reader.key_u64());
  TRY(reader.expect_end());
  return TaskId{id};
}

std::string id_value(const Place& place) {
  std::string value;
  ByteWriter writer(value);
  if (place.lane != Lane::due) write_lane(writer, place);
  write_instant(writer, place.at);
  return value;
}

Result<Place> parse_id_value(TaskId id, std::string_view value) {
  ByteReader reader(value);
  Place place;
  if (value.size() != kDuePlaceBytes) {
    ASSIGN_OR_RETURN(place, read_lane(reader));
  }
  ASSIGN_OR_RETURN(place.at, read_instant(reader));
  place.id = id;
  TRY(reader.expect_end());
  return place;
}

void append_accepted(std::string& value, const Place& place, std::string_view record) {
  const std::size_t begin = value.size();
  ByteWriter writer(value);
  writer.u8(static_cast<std::uint8_t>(place.lane));
  if (place.lane != Lane::due) {
    writer.key_u32(place.queue);
    writer.key_u32(place.priority);
  }
  write_instant(writer, place.at);
  writer.u16(check_of(place.id, std::string_view(value).substr(begin)));
  writer.raw(record);
  DETENT_DCHECK(split_accepted(place.id, std::string_view(value).substr(begin)).place == place);
}

AcceptedValue split_accepted(TaskId id, std::string_view value) noexcept {
  const AcceptedValue damaged{front_place(id), value};
  if (value.empty()) return damaged;
  // Every value begins with the lane, which decides how many bytes of place follow.
  const bool is_due = value[0] == '\0';
  const std::size_t place_bytes = is_due ? 1 + kDuePlaceBytes : kLanePlaceBytes;
  if (value.size() < place_bytes + kCheckBytes) return damaged;
  const std::string_view bytes = value.substr(0, place_bytes);
  const auto byte = [&value](std::size_t i) {
    return static_cast<unsigned>(static_cast<unsigned char>(value[i]));
  };
  if ((byte(place_bytes) | byte(place_bytes + 1) << 8) != check_of(id, bytes)) return damaged;
  const Result<Place> place = parse_id_value(id, is_due ? bytes.substr(1) : bytes);
  if (!place) return damaged;
  return {*place, value.substr(place_bytes + kCheckBytes)};
}

Place front_place(TaskId id) noexcept {
  return {.lane = Lane::due, .queue = 0, .priority = 0, .at = WallTime{}, .id = id};
}

std::string expiry_key(WallTime at, std::string_view key_key) {
  std::string bytes;
  bytes.reserve(8 + key_key.size());
  ByteWriter writer(bytes);
  write_instant(writer, at);
  writer.raw(key_key);
  return bytes;
}

Result<Expiry> parse_expiry_key(std::string_view key) {
  ByteReader reader(key);
  ASSIGN_OR_RETURN(const WallTime at, read_instant(reader));
  return Expiry{at, key.substr(reader.position())};
}

}  // namespace detent
