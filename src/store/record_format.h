// A task as bytes on disk. docs/internals/storage-format.md defines every byte; change both
// together, and raise the version when the meaning of a byte changes.
//
// A record is sealed with a CRC-32C over its bytes and the id it belongs to. So a record that was
// damaged, cut off, or put under another task's key is refused when it is read, never taken for
// something else. (CRC-32C finds every error of up to 5 bits, and every burst of up to 32, in
// records of this size.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "task/task.h"

namespace detent {

inline constexpr std::uint8_t kRecordVersion = 1;

/// Requires: the sizes of limits.h are kept; validate() sees to that for all that comes from
/// outside. About 25 bytes more than queue name and payload; an attempt in the history has about 15
/// more than worker and error.
std::string encode_record(const Task& task);

/// Errors: data_loss, saying which task and what is wrong: a version this program does not know, a
/// checksum that does not match, or fields that are no task.
Result<Task> decode_record(TaskId id, std::string_view record);

/// Appends the CRC-32C of `context` followed by `bytes`: `context` is what the bytes belong to.
void seal(std::string& bytes, std::string_view context);
/// What was sealed, without the checksum. Errors: data_loss.
Result<std::string_view> unseal(std::string_view sealed, std::string_view context);

}  // namespace detent
