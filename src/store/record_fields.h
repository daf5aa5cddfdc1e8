// The fields that stored records of several kinds have in common, as bytes.
// docs/internals/storage-format.md defines them. For the formats of this folder and of those below
// it; nobody else needs to know.
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

/// Data loss, as told by whoever knows which record it is.
Error damaged_record(std::string what);

/// Durations, and times since 1970, are varints of their two's complement: 6 bytes for the dates of
/// this century, 10 for what is negative.
void write_duration(ByteWriter& writer, std::chrono::milliseconds duration);
Result<std::chrono::milliseconds> read_duration(ByteReader& reader);
void write_time(ByteWriter& writer, WallTime time);
Result<WallTime> read_time(ByteReader& reader);

void write_backoff(ByteWriter& writer, const Backoff& backoff);
Result<Backoff> read_backoff(ByteReader& reader);

/// A varint of at most 32 bits.
Result<std::uint32_t> read_u32(ByteReader& reader);
/// Refuses one that is longer than its field may be.
Result<std::string> read_string(ByteReader& reader, std::size_t max_size);

/// What of a payload and its rules stands in the flags of its record. Other flags have other bits.
inline constexpr unsigned kTaskFlags = 0b1'1101;
unsigned flags_of(const Payload& payload, const TaskRules& rules) noexcept;
Payload::Kind payload_kind_of(unsigned flags) noexcept;
/// The rules that flags tell of; the priority, which every task has, is not among them.
void write_optional_rules(ByteWriter& writer, const TaskRules& rules);
Result<void> read_optional_rules(ByteReader& reader, unsigned flags, TaskRules& rules);

}  // namespace detent
