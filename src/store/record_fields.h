// The encoding of fields that several kinds of stored records share.
// docs/internals/storage-format.md defines it. Only the formats of this folder and its subfolders
// use this header.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "detent/clock.h"
#include "task/task.h"

namespace detent {

/// A data_loss error. The caller adds which record it is.
Error damaged_record(std::string what);

/// Durations and times since 1970 are varints of their two's complement: 6 bytes for dates of this
/// century, 10 bytes for negative values.
void write_duration(ByteWriter& writer, std::chrono::milliseconds duration);
Result<std::chrono::milliseconds> read_duration(ByteReader& reader);
void write_time(ByteWriter& writer, WallTime time);
Result<WallTime> read_time(ByteReader& reader);

void write_backoff(ByteWriter& writer, const Backoff& backoff);
Result<Backoff> read_backoff(ByteReader& reader);

/// Reads a varint. Errors: data_loss if the value has more than 32 bits.
Result<std::uint32_t> read_u32(ByteReader& reader);
/// Reads a string. Errors: data_loss if it is longer than `max_size`.
Result<std::string> read_string(ByteReader& reader, std::size_t max_size);

/// The bits for a payload and its rules in the flags of a record. Record formats use other bits for
/// their other flags.
inline constexpr unsigned kTaskFlags = 0b1'1101;
unsigned flags_of(const Payload& payload, const TaskRules& rules) noexcept;
Payload::Kind payload_kind_of(unsigned flags) noexcept;
/// Writes or reads the rules that have a flag. The priority is not one of them, because each task
/// has a priority.
void write_optional_rules(ByteWriter& writer, const TaskRules& rules);
Result<void> read_optional_rules(ByteReader& reader, unsigned flags, TaskRules& rules);

}  // namespace detent
