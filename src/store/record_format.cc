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

// The flags in addition to kTaskFlags. All other bits must be 0.
constexpr unsigned kHasKey = 1u << 1;
constexpr unsigned kStandingShift = 5;
constexpr unsigned kStandingBits = 3u << kStandingShift;
constexpr unsigned kHasHistory = 1u << 7;
constexpr unsigned kHasTally = 1u << 8;
constexpr unsigned kHasWebhook = 1u << 9;
constexpr unsigned kHasHeaders = 1u << 10;
constexpr unsigned kHasLate = 1u << 11;  // the history has reasons for late attempts
constexpr unsigned kKnownFlags = (1u << 12) - 1;
static_assert((kTaskFlags & (kHasKey | kStandingBits)) == 0 && kTaskFlags < kStandingBits);

// A standing is stored as its number in the enum.
static_assert(static_cast<unsigned>(Standing::live) == 0);
static_assert(static_cast<unsigned>(Standing::dead) == 1);
static_assert(static_cast<unsigned>(Standing::completed) == 2);
static_assert(static_cast<unsigned>(Standing::cancelled) == 3);

/// The context of the seal is the id of the task, so the record is refused under any other id.
std::string seal_context(TaskId id) {
  std::string context;
  ByteWriter(context).u64(id.value);
  return context;
}

bool has_late(const Task& task) {
  return std::ranges::any_of(task.history,
                             [](const Attempt& one) { return one.late != LatenessParts{}; });
}

unsigned flags_of(const Task& task) {
  unsigned flags = flags_of(task.payload, task.rules);
  flags |= static_cast<unsigned>(task.standing) << kStandingShift;
  if (!task.key.empty()) flags |= kHasKey;
  if (!task.history.empty()) flags |= kHasHistory;
  if (task.tally != TaskTally{}) flags |= kHasTally;
  if (!task.webhook.empty()) flags |= kHasWebhook;
  if (!task.headers.empty()) flags |= kHasHeaders;
  if (has_late(task)) flags |= kHasLate;
  return flags;
}

Standing standing_of(unsigned flags) {
  return static_cast<Standing>((flags & kStandingBits) >> kStandingShift);
}

Result<std::vector<Attempt>> read_history(ByteReader& reader) {
  ASSIGN_OR_RETURN(const std::uint64_t count, reader.varint());
  if (count < 1 || count > kMaxHistory) {
    return damaged_record("its history has " + std::to_string(count) +
                          " attempts, allowed are 1 to " + std::to_string(kMaxHistory));
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
    return damaged_record("it has " + std::to_string(count) + " headers, allowed are 1 to " +
                          std::to_string(kMaxHeaders));
  }
  TaskHeaders headers(count);
  std::size_t bytes = 0;
  for (TaskHeader& header : headers) {
    ASSIGN_OR_RETURN(header.name, read_string(reader, kMaxHeaderNameBytes));
    ASSIGN_OR_RETURN(header.value, read_string(reader, kMaxHeaderValueBytes));
    bytes += header.name.size() + header.value.size();
  }
  if (bytes > kMaxHeadersBytes)
    return damaged_record("its headers have " + std::to_string(bytes) + " bytes, at most " +
                          std::to_string(kMaxHeadersBytes) + " are allowed");
  return headers;
}

Result<void> read_late(ByteReader& reader, Task& task) {
  for (Attempt& attempt : task.history) {
    for (std::chrono::milliseconds& part : attempt.late) {
      ASSIGN_OR_RETURN(part, read_duration(reader));
      if (part < std::chrono::milliseconds{0})
        return damaged_record("the lateness of an attempt is negative");
    }
  }
  if (!has_late(task))
    return damaged_record("its flags say that an attempt began late, but no attempt did");
  return ok();
}

/// Reads the fields after the payload. Each of them has a flag.
Result<void> read_extras(ByteReader& reader, unsigned flags, Task& task) {
  if (flags & kHasTally) {
    ASSIGN_OR_RETURN(task.tally, read_tally(reader));
  }
  if (flags & kHasWebhook) {
    ASSIGN_OR_RETURN(task.webhook, read_string(reader, kMaxWebhookBytes));
    if (task.webhook.empty()) return damaged_record("its webhook is empty");
  }
  if (flags & kHasHeaders) {
    ASSIGN_OR_RETURN(task.headers, read_headers(reader));
  }
  return (flags & kHasLate) != 0 ? read_late(reader, task) : ok();
}

/// Reads the fields in the order of encode_record().
Result<Task> read_fields(TaskId id, std::string_view fields) {
  ByteReader reader(fields);
  TRY(reader.u8());  // the version
  Task task;
  task.id = id;
  ASSIGN_OR_RETURN(const std::uint32_t flags, read_u32(reader));
  if ((flags & ~kKnownFlags) != 0) {
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
  TRY(read_key_and_history(reader, flags, task));
  ASSIGN_OR_RETURN(task.payload.data, read_string(reader, kMaxPayloadBytes));
  TRY(read_extras(reader, flags, task));
  TRY(reader.expect_end());
  return task;
}

Result<Task> decode(TaskId id, std::string_view record) {
  ByteReader reader(record);
  ASSIGN_OR_RETURN(const unsigned version, reader.u8());
  // Check the version before the checksum, because another version may seal its records
  // differently.
  if (version != kRecordVersion) {
    return damaged_record("its version is " + std::to_string(version) +
                          ", this program reads version " + std::to_string(kRecordVersion));
  }
  ASSIGN_OR_RETURN(const std::string_view bytes, unseal(record, seal_context(id)));
  return read_fields(id, bytes);
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
  if (task.tally != TaskTally{}) write_tally(writer, task.tally);
  if (!task.webhook.empty()) writer.string(task.webhook);
  if (!task.headers.empty()) write_headers(writer, task.headers);
  if (!has_late(task)) return;
  for (const Attempt& attempt : task.history) {
    for (const std::chrono::milliseconds part : attempt.late) write_duration(writer, part);
  }
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
  writer.u8(kRecordVersion);
  writer.varint(flags_of(task));
  write_time(writer, task.due_at);
  write_time(writer, task.created_at);
  writer.varint(task.rules.priority);
  writer.varint(task.attempts);
  write_optional_rules(writer, task.rules);
  writer.string(task.queue);
  if (!task.key.empty()) writer.string(task.key);
  if (!task.history.empty()) write_history(writer, task.history);
  writer.string(task.payload.data);
  write_extras(writer, task);
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
