#include "store/record_format.h"

#include <limits>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "detent/check.h"
#include "task/limits.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kChecksumBytes = 4;

// The flags byte. A bit that is not named here must be 0.
constexpr unsigned kPayloadIsBytes = 1u << 0;
constexpr unsigned kDead = 1u << 1;
constexpr unsigned kHasMaxAttempts = 1u << 2;
constexpr unsigned kHasVisibilityTimeout = 1u << 3;
constexpr unsigned kHasBackoff = 1u << 4;
constexpr unsigned kKnownFlags = (1u << 5) - 1;

Error damaged(std::string message) {
  return {ErrorCode::data_loss, std::move(message), std::string()};
}

/// What a record is sealed to: its id, so that it is refused under any other.
std::string seal_context(TaskId id) {
  std::string context;
  ByteWriter(context).u64(id.value);
  return context;
}

unsigned flags_of(const Task& task) {
  unsigned flags = 0;
  if (task.payload.kind == Payload::Kind::bytes) flags |= kPayloadIsBytes;
  if (task.dead) flags |= kDead;
  if (task.rules.max_attempts) flags |= kHasMaxAttempts;
  if (task.rules.visibility_timeout) flags |= kHasVisibilityTimeout;
  if (task.rules.backoff) flags |= kHasBackoff;
  return flags;
}

/// Times and durations are varints of their two's complement: 6 bytes for the dates of this
/// century, 10 for what is negative, which no task has.
void write_milliseconds(ByteWriter& writer, milliseconds value) {
  writer.varint(static_cast<std::uint64_t>(value.count()));
}

Result<milliseconds> read_milliseconds(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::uint64_t value, reader.varint());
  return milliseconds{static_cast<milliseconds::rep>(value)};
}

Result<std::uint32_t> read_u32(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::uint64_t value, reader.varint());
  if (value > std::numeric_limits<std::uint32_t>::max())
    return damaged("a number has over 32 bits");
  return static_cast<std::uint32_t>(value);
}

Result<void> read_optional_rules(ByteReader& reader, unsigned flags, TaskRules& rules) {
  if (flags & kHasMaxAttempts) {
    ASSIGN_OR_RETURN(rules.max_attempts, read_u32(reader));
  }
  if (flags & kHasVisibilityTimeout) {
    ASSIGN_OR_RETURN(rules.visibility_timeout, read_milliseconds(reader));
  }
  if (flags & kHasBackoff) {
    Backoff backoff;
    ASSIGN_OR_RETURN(backoff.initial, read_milliseconds(reader));
    ASSIGN_OR_RETURN(backoff.max, read_milliseconds(reader));
    rules.backoff = backoff;
  }
  return ok();
}

/// The fields after the version, in the order in which encode_record writes them.
Result<Task> read_fields(TaskId id, std::string_view fields) {
  ByteReader reader(fields);
  Task task;
  task.id = id;
  ASSIGN_OR_RETURN(const unsigned flags, reader.u8());
  if ((flags & ~kKnownFlags) != 0) return damaged("a flag is set that version 1 does not have");
  task.payload.kind = (flags & kPayloadIsBytes) ? Payload::Kind::bytes : Payload::Kind::json;
  task.dead = (flags & kDead) != 0;
  ASSIGN_OR_RETURN(const milliseconds due_at, read_milliseconds(reader));
  ASSIGN_OR_RETURN(const milliseconds created_at, read_milliseconds(reader));
  task.due_at = WallTime{due_at};
  task.created_at = WallTime{created_at};
  ASSIGN_OR_RETURN(task.rules.priority, read_u32(reader));
  ASSIGN_OR_RETURN(task.attempts, read_u32(reader));
  TRY(read_optional_rules(reader, flags, task.rules));
  ASSIGN_OR_RETURN(task.queue, reader.string());
  ASSIGN_OR_RETURN(task.last_error, reader.string());
  ASSIGN_OR_RETURN(task.payload.data, reader.string());
  TRY(reader.expect_end());
  return task;
}

Result<Task> decode(TaskId id, std::string_view record) {
  ByteReader reader(record);
  ASSIGN_OR_RETURN(const unsigned version, reader.u8());
  // Before the checksum: another version may seal its records in another way.
  if (version != kRecordVersion) {
    return damaged("its version is " + std::to_string(version) + ", this program reads version " +
                   std::to_string(kRecordVersion) + " only");
  }
  ASSIGN_OR_RETURN(const std::string_view bytes, unseal(record, seal_context(id)));
  return read_fields(id, bytes.substr(1));
}

}  // namespace

void seal(std::string& bytes, std::string_view context) {
  const std::uint32_t checksum = crc32c(bytes, crc32c(context));
  ByteWriter(bytes).u32(checksum);
}

Result<std::string_view> unseal(std::string_view sealed, std::string_view context) {
  if (sealed.size() < kChecksumBytes) return damaged("it is cut off");
  const std::string_view bytes = sealed.substr(0, sealed.size() - kChecksumBytes);
  ByteReader reader(sealed.substr(bytes.size()));
  ASSIGN_OR_RETURN(const std::uint32_t checksum, reader.u32());
  if (checksum != crc32c(bytes, crc32c(context))) return damaged("its checksum does not match");
  return bytes;
}

std::string encode_record(const Task& task) {
  DETENT_CHECK(task.queue.size() <= kMaxQueueNameBytes);
  DETENT_CHECK(task.payload.data.size() <= kMaxPayloadBytes);
  DETENT_CHECK(task.last_error.size() <= kMaxErrorBytes);
  std::string record;
  record.reserve(64 + task.queue.size() + task.last_error.size() + task.payload.data.size());
  ByteWriter writer(record);
  writer.u8(kRecordVersion);
  writer.u8(static_cast<std::uint8_t>(flags_of(task)));
  write_milliseconds(writer, task.due_at.time_since_epoch());
  write_milliseconds(writer, task.created_at.time_since_epoch());
  writer.varint(task.rules.priority);
  writer.varint(task.attempts);
  if (task.rules.max_attempts) writer.varint(*task.rules.max_attempts);
  if (task.rules.visibility_timeout) write_milliseconds(writer, *task.rules.visibility_timeout);
  if (task.rules.backoff) {
    write_milliseconds(writer, task.rules.backoff->initial);
    write_milliseconds(writer, task.rules.backoff->max);
  }
  writer.string(task.queue);
  writer.string(task.last_error);
  writer.string(task.payload.data);
  seal(record, seal_context(task.id));
  DETENT_DCHECK(decode(task.id, record).value() == task);
  return record;
}

Result<Task> decode_record(TaskId id, std::string_view record) {
  Result<Task> task = decode(id, record);
  if (task) return task;
  return with_context("read record of task " + to_string(id), std::move(task).error());
}

}  // namespace detent
