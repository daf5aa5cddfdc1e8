// A recurring schedule as bytes on disk. docs/internals/storage-format.md defines each byte. Change
// the page and this format together. If the meaning of a byte changes, raise the version.
//
// The name is not in the record. It is in the key of the record, and in the checksum that seals the
// record. So a reader refuses a record that was damaged, cut off, or stored under another name. A
// task record does the same with its id (record_format.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "task/recurring_schedule.h"

namespace detent {

inline constexpr std::uint8_t kScheduleVersion = 1;

/// Encodes a schedule. Requires: validate() accepts the schedule; an interval or calendar rule has
/// an anchor. The record is about 50 bytes longer than queue name, rule and payload.
std::string encode_schedule(const ScheduleRecord& record);

/// Decodes the record of a schedule. The result passes validate(). Errors: data_loss, with the
/// schedule and the reason. The reasons are an unknown version, a wrong checksum, or fields that
/// are not a valid schedule.
Result<ScheduleRecord> decode_schedule(std::string_view name, std::string_view bytes);

}  // namespace detent
