#include "store/record_fields.h"

#include <limits>
#include <string_view>
#include <utility>

namespace detent {

namespace {

using std::chrono::milliseconds;

constexpr unsigned kPayloadIsBytes = 1u << 0;
constexpr unsigned kHasMaxAttempts = 1u << 2;
constexpr unsigned kHasVisibilityTimeout = 1u << 3;
constexpr unsigned kHasBackoff = 1u << 4;
static_assert(kTaskFlags ==
              (kPayloadIsBytes | kHasMaxAttempts | kHasVisibilityTimeout | kHasBackoff));

}  // namespace

Error damaged_record(std::string what) {
  return {ErrorCode::data_loss, std::move(what), std::string()};
}

void write_duration(ByteWriter& writer, milliseconds duration) {
  writer.varint(static_cast<std::uint64_t>(duration.count()));
}

Result<milliseconds> read_duration(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::uint64_t value, reader.varint());
  return milliseconds{static_cast<milliseconds::rep>(value)};
}

void write_time(ByteWriter& writer, WallTime time) {
  write_duration(writer, time.time_since_epoch());
}

Result<WallTime> read_time(ByteReader& reader) {
  ASSIGN_OR_RETURN(const milliseconds since_1970, read_duration(reader));
  return WallTime{since_1970};
}

void write_backoff(ByteWriter& writer, const Backoff& backoff) {
  write_duration(writer, backoff.initial);
  write_duration(writer, backoff.max);
}

Result<Backoff> read_backoff(ByteReader& reader) {
  Backoff backoff;
  ASSIGN_OR_RETURN(backoff.initial, read_duration(reader));
  ASSIGN_OR_RETURN(backoff.max, read_duration(reader));
  return backoff;
}

Result<std::uint32_t> read_u32(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::uint64_t value, reader.varint());
  if (value > std::numeric_limits<std::uint32_t>::max()) {
    return damaged_record("a number has more than 32 bits");
  }
  return static_cast<std::uint32_t>(value);
}

Result<std::string> read_string(ByteReader& reader, std::size_t max_size) {
  ASSIGN_OR_RETURN(const std::string_view bytes, reader.string());
  if (bytes.size() > max_size)
    return damaged_record("a string has " + std::to_string(bytes.size()) +
                          " bytes; its field allows " + std::to_string(max_size));
  return std::string(bytes);
}

unsigned flags_of(const Payload& payload, const TaskRules& rules) noexcept {
  unsigned flags = 0;
  if (payload.kind == Payload::Kind::bytes) flags |= kPayloadIsBytes;
  if (rules.max_attempts) flags |= kHasMaxAttempts;
  if (rules.visibility_timeout) flags |= kHasVisibilityTimeout;
  if (rules.backoff) flags |= kHasBackoff;
  return flags;
}

Payload::Kind payload_kind_of(unsigned flags) noexcept {
  return (flags & kPayloadIsBytes) ? Payload::Kind::bytes : Payload::Kind::json;
}

void write_optional_rules(ByteWriter& writer, const TaskRules& rules) {
  if (rules.max_attempts) writer.varint(*rules.max_attempts);
  if (rules.visibility_timeout) write_duration(writer, *rules.visibility_timeout);
  if (rules.backoff) write_backoff(writer, *rules.backoff);
}

Result<void> read_optional_rules(ByteReader& reader, unsigned flags, TaskRules& rules) {
  if (flags & kHasMaxAttempts) {
    ASSIGN_OR_RETURN(rules.max_attempts, read_u32(reader));
  }
  if (flags & kHasVisibilityTimeout) {
    ASSIGN_OR_RETURN(rules.visibility_timeout, read_duration(reader));
  }
  if (flags & kHasBackoff) {
    ASSIGN_OR_RETURN(rules.backoff, read_backoff(reader));
  }
  return ok();
}

}  // namespace detent
