// A recurring schedule as bytes on disk. docs/internals/storage-format.md defines every byte;
// change both together, and raise the version when the meaning of a byte changes.
//
// The name is not in the record but in its key, and in the checksum that seals it, as the id of a
// task is (record_format.h): a record that was damaged, cut off, or put under another name is
// refused when it is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "task/recurring_schedule.h"

namespace detent {

inline constexpr std::uint8_t kScheduleVersion = 1;

/// Requires: validate() passes the schedule, and an interval or a calendar has its anchor. About 50
/// bytes more than queue name, rule and payload.
std::string encode_schedule(const ScheduleRecord& record);

/// What is read passes validate() too. Errors: data_loss, saying which schedule and what is wrong:
/// a version this program does not know, a checksum that does not match, or fields that are none.
Result<ScheduleRecord> decode_schedule(std::string_view name, std::string_view bytes);

}  // namespace detent
