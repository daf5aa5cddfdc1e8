#include "store/record_format.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "detent/check.h"
#include "store/record_fields.h"
#include "task/limits.h"

namespace detent {

namespace {

constexpr std::size_t kChecksumBytes = 4;
constexpr std::uint8_t kPlainVersion = 2;   // ends with the payload
constexpr std::uint8_t kTallyVersion = 3;   // with a tally
constexpr std::uint8_t kExtrasVersion = 4;  // with a byte that tells what else there is
constexpr std::uint8_t kLateVersion = 5;    // the same, with why its attempts began late
static_assert(kLateVersion == kRecordVersion);

// The flags byte, beside kTaskFlags. Version 1 has the first five only; its other bits are 0.
constexpr unsigned kStandingLow = 1u << 1;
constexpr unsigned kStandingHigh = 1u << 5;
constexpr unsigned kHasKey = 1u << 6;
constexpr unsigned kHasHistory = 1u << 7;
constexpr unsigned kFlagsOfVersion1 = (1u << 5) - 1;

// What else there is, from version 4 on.
constexpr unsigned kHasTally = 1u << 0;
constexpr unsigned kHasWebhook = 1u << 1;
constexpr unsigned kHasHeaders = 1u << 2;
constexpr unsigned kExtrasOfVersion4 = (1u << 3) - 1;
constexpr unsigned kHasLate = 1u << 3;  // in version 5, always

// So that the low bit of the standing is what was the flag "dead" in version 1.
static_assert(static_cast<unsigned>(Standing::live) == 0);
static_assert(static_cast<unsigned>(Standing::dead) == 1);
static_assert(static_cast<unsigned>(Standing::completed) == 2);
static_assert(static_cast<unsigned>(Standing::cancelled) == 3);

/// What a record is sealed to: its id, so that it is refused under any other.
std::string seal_context(TaskId id) {
  std::string context;
  ByteWriter(context).u64(id.value);
  return context;
}

unsigned flags_of(const Task& task) {
  unsigned flags = flags_of(task.payload, task.rules);
  const auto standing = static_cast<unsigned>(task.standing);
  if ((standing & 1u) != 0) flags |= kStandingLow;
  if ((standing & 2u) != 0) flags |= kStandingHigh;
  if (!task.key.empty()) flags |= kHasKey;
  if (!task.history.empty()) flags |= kHasHistory;
  return flags;
}

Standing standing_of(unsigned flags) {
  return static_cast<Standing>(((flags & kStandingLow) ? 1u : 0u) |
                               ((flags & kStandingHigh) ? 2u : 0u));
}

Result<std::vector<Attempt>> read_history(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::uint64_t count, reader.varint());
  if (count < 1 || count > kMaxHistory) {
    return damaged_record("a history of " + std::to_string(count) + " attempts");
  }
  std::vector<Attempt> history(count);
  for (Attempt& attempt : history) {
    ASSIGN_OR_RETURN(attempt.started_at, read_time(reader));
    ASSIGN_OR_RETURN(attempt.ended_at, read_time(reader));
    ASSIGN_OR_RETURN(attempt.worker, read_string(reader, kMaxWorkerBytes));
    ASSIGN_OR_RETURN(attempt.error, read_string(reader, kMaxErrorBytes));
  }
  return history;
}

/// Version 1 knew of the attempts only how the last one ended.
Result<void> read_last_error(ByteReader& reader, Task& task) {
  ASSIGN_OR_RETURN(std::string error, read_string(reader, kMaxErrorBytes));
  if (error.empty()) return ok();
  Attempt attempt;
  attempt.error = std::move(error);
  task.history.push_back(std::move(attempt));
  return ok();
}

Result<void> read_key_and_history(ByteReader& reader, unsigned flags, Task& task) {
  if (flags & kHasKey) {
    ASSIGN_OR_RETURN(task.key, read_string(reader, kMaxKeyBytes));
    if (task.key.empty()) return damaged_record("its key is empty");
  }
  if (flags & kHasHistory) {
    ASSIGN_OR_RETURN(task.history, read_history(reader));
  }
  return ok();
}

Result<TaskTally> read_tally(ByteReader& reader) {
  TaskTally tally;
  for (std::uint32_t* const count :
       {&tally.leases, &tally.run_outs, &tally.releases, &tally.burials, &tally.redrives}) {
    ASSIGN_OR_RETURN(*count, read_u32(reader));
  }
  ASSIGN_OR_RETURN(tally.delay, read_duration(reader));
  if (tally == TaskTally{}) return damaged_record("its tally is empty");
  return tally;
}

Result<TaskHeaders> read_headers(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::uint64_t count, reader.varint());
  if (count < 1 || count > kMaxHeaders) {
    return damaged_record(std::to_string(count) + " headers");
  }
  TaskHeaders headers(count);
  std::size_t bytes = 0;
  for (TaskHeader& header : headers) {
    ASSIGN_OR_RETURN(header.name, read_string(reader, kMaxHeaderNameBytes));
    ASSIGN_OR_RETURN(header.value, read_string(reader, kMaxHeaderValueBytes));
    bytes += header.name.size() + header.value.size();
  }
  if (bytes > kMaxHeadersBytes) return damaged_record("its headers are too long");
  return headers;
}

bool has_late(const Task& task) {
  return std::ranges::any_of(task.history,
                             [](const Attempt& one) { return one.late != LatenessParts{}; });
}

Result<void> read_late(ByteReader& reader, Task& task) {
  for (Attempt& attempt : task.history) {
    for (std::chrono::milliseconds& part : attempt.late) {
      ASSIGN_OR_RETURN(part, read_duration(reader));
      if (part < std::chrono::milliseconds{0}) return damaged_record("an attempt began early");
    }
  }
  if (!has_late(task)) return damaged_record("no attempt of it began late");
  return ok();
}

Result<void> read_extras(ByteReader& reader, unsigned version, Task& task) {
  ASSIGN_OR_RETURN(const unsigned extras, reader.u8());
  const unsigned known = version == kLateVersion ? kExtrasOfVersion4 | kHasLate : kExtrasOfVersion4;
  const unsigned makes = version == kLateVersion ? kHasLate : kHasWebhook | kHasHeaders;
  if ((extras & ~known) != 0) return damaged_record("it has what its version does not");
  if ((extras & makes) == 0) return damaged_record("nothing makes it of its version");
  if (extras & kHasTally) {
    ASSIGN_OR_RETURN(task.tally, read_tally(reader));
  }
  if (extras & kHasWebhook) {
    ASSIGN_OR_RETURN(task.webhook, read_string(reader, kMaxWebhookBytes));
    if (task.webhook.empty()) return damaged_record("its webhook is empty");
  }
  if (extras & kHasHeaders) {
    ASSIGN_OR_RETURN(task.headers, read_headers(reader));
  }
  return (extras & kHasLate) != 0 ? read_late(reader, task) : ok();
}

/// The fields, in the order in which encode_record writes them.
Result<Task> read_fields(TaskId id, unsigned version, std::string_view fields) {
  ByteReader reader(fields);
  TRY(reader.u8());  // the version
  Task task;
  task.id = id;
  ASSIGN_OR_RETURN(const unsigned flags, reader.u8());
  if (version == 1 && (flags & ~kFlagsOfVersion1) != 0) {
    return damaged_record("a flag is set that version 1 does not have");
  }
  task.payload.kind = payload_kind_of(flags);
  task.standing = standing_of(flags);
  ASSIGN_OR_RETURN(task.due_at, read_time(reader));
  ASSIGN_OR_RETURN(task.created_at, read_time(reader));
  ASSIGN_OR_RETURN(task.rules.priority, read_u32(reader));
  ASSIGN_OR_RETURN(task.attempts, read_u32(reader));
  TRY(read_optional_rules(reader, flags, task.rules));
  ASSIGN_OR_RETURN(task.queue, read_string(reader, kMaxQueueNameBytes));
  if (version == 1) {
    TRY(read_last_error(reader, task));
  } else {
    TRY(read_key_and_history(reader, flags, task));
  }
  ASSIGN_OR_RETURN(task.payload.data, read_string(reader, kMaxPayloadBytes));
  if (version == kTallyVersion) {
    ASSIGN_OR_RETURN(task.tally, read_tally(reader));
  } else if (version >= kExtrasVersion) {
    TRY(read_extras(reader, version, task));
  }
  TRY(reader.expect_end());
  return task;
}

Result<Task> decode(TaskId id, std::string_view record) {
  ByteReader reader(record);
  ASSIGN_OR_RETURN(const unsigned version, reader.u8());
  // Before the checksum: another version may seal its records in another way.
  if (version < 1 || version > kRecordVersion) {
    return damaged_record("its version is " + std::to_string(version) +
                          ", this program reads versions 1 to " + std::to_string(kRecordVersion));
  }
  ASSIGN_OR_RETURN(const std::string_view bytes, unseal(record, seal_context(id)));
  return read_fields(id, version, bytes);
}

void write_history(ByteWriter& writer, const std::vector<Attempt>& history) {
  writer.varint(history.size());
  for (const Attempt& attempt : history) {
    write_time(writer, attempt.started_at);
    write_time(writer, attempt.ended_at);
    writer.string(attempt.worker);
    writer.string(attempt.error);
  }
}

void write_tally(ByteWriter& writer, const TaskTally& tally) {
  for (const std::uint32_t count :
       {tally.leases, tally.run_outs, tally.releases, tally.burials, tally.redrives}) {
    writer.varint(count);
  }
  write_duration(writer, tally.delay);
}

void write_headers(ByteWriter& writer, const TaskHeaders& headers) {
  writer.varint(headers.size());
  for (const TaskHeader& header : headers) {
    writer.string(header.name);
    writer.string(header.value);
  }
}

void write_extras(ByteWriter& writer, const Task& task) {
  const bool has_tally = task.tally != TaskTally{};
  const bool is_late = has_late(task);
  writer.u8(static_cast<std::uint8_t>(
      (has_tally ? kHasTally : 0) | (task.webhook.empty() ? 0 : kHasWebhook) |
      (task.headers.empty() ? 0 : kHasHeaders) | (is_late ? kHasLate : 0)));
  if (has_tally) write_tally(writer, task.tally);
  if (!task.webhook.empty()) writer.string(task.webhook);
  if (!task.headers.empty()) write_headers(writer, task.headers);
  if (!is_late) return;
  for (const Attempt& attempt : task.history) {
    for (const std::chrono::milliseconds part : attempt.late) write_duration(writer, part);
  }
}

std::uint8_t version_of(const Task& task) {
  if (has_late(task)) return kLateVersion;
  if (!task.webhook.empty() || !task.headers.empty()) return kExtrasVersion;
  return task.tally != TaskTally{} ? kTallyVersion : kPlainVersion;
}

void check_limits(const Task& task) {
  DETENT_CHECK(task.queue.size() <= kMaxQueueNameBytes);
  DETENT_CHECK(task.payload.data.size() <= kMaxPayloadBytes);
  DETENT_CHECK(task.key.size() <= kMaxKeyBytes);
  DETENT_CHECK(task.history.size() <= kMaxHistory);
  DETENT_CHECK(task.webhook.size() <= kMaxWebhookBytes);
  DETENT_CHECK(task.headers.size() <= kMaxHeaders);
  for (const Attempt& attempt : task.history) {
    DETENT_CHECK(attempt.worker.size() <= kMaxWorkerBytes);
    DETENT_CHECK(attempt.error.size() <= kMaxErrorBytes);
    for (const auto part : attempt.late) DETENT_CHECK(part >= std::chrono::milliseconds{0});
  }
}

}  // namespace

void seal(std::string& bytes, std::string_view context) {
  const std::uint32_t checksum = crc32c(bytes, crc32c(context));
  ByteWriter(bytes).u32(checksum);
}

Result<std::string_view> unseal(std::string_view sealed, std::string_view context) {
  if (sealed.size() < kChecksumBytes) return damaged_record("it is cut off");
  const std::string_view bytes = sealed.substr(0, sealed.size() - kChecksumBytes);
  ByteReader reader(sealed.substr(bytes.size()));
  ASSIGN_OR_RETURN(const std::uint32_t checksum, reader.u32());
  if (checksum != crc32c(bytes, crc32c(context)))
    return damaged_record("its checksum does not match");
  return bytes;
}

std::string encode_record(const Task& task) {
  check_limits(task);
  std::string record;
  record.reserve(64 + task.queue.size() + task.key.size() + task.payload.data.size());
  ByteWriter writer(record);
  const std::uint8_t version = version_of(task);
  writer.u8(version);
  writer.u8(static_cast<std::uint8_t>(flags_of(task)));
  write_time(writer, task.due_at);
  write_time(writer, task.created_at);
  writer.varint(task.rules.priority);
  writer.varint(task.attempts);
  write_optional_rules(writer, task.rules);
  writer.string(task.queue);
  if (!task.key.empty()) writer.string(task.key);
  if (!task.history.empty()) write_history(writer, task.history);
  writer.string(task.payload.data);
  if (version == kTallyVersion) write_tally(writer, task.tally);
  if (version >= kExtrasVersion) write_extras(writer, task);
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
