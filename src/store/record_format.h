// A task as bytes on disk. docs/internals/storage-format.md defines each byte. Change the page and
// this format together. After the first release, a new field or a new meaning of a byte raises the
// version.
//
// A record is sealed with a CRC-32C over its bytes and its task id. So a reader refuses a record
// that was damaged, cut off, or stored under the key of another task. For records of this size,
// CRC-32C finds all errors of up to 5 bits, and all bursts of up to 32 bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "task/task.h"

namespace detent {

inline constexpr std::uint8_t kRecordVersion = 1;

/// Encodes a task. Requires: the task is within the sizes of limits.h. validate() ensures this for
/// all data from outside. The record is about 25 bytes longer than queue name and payload. An
/// attempt in the history takes about 15 bytes more than its worker and its error.
std::string encode_record(const Task& task);

/// Decodes the record of a task. Errors: data_loss, with the task and the reason. The reasons are
/// an unknown version, a wrong checksum, or fields that are not a valid task.
Result<Task> decode_record(TaskId id, std::string_view record);

/// Appends the CRC-32C of `context` followed by `bytes`. `context` identifies the owner of the
/// bytes, for example the id of a task.
void seal(std::string& bytes, std::string_view context);
/// Checks the checksum and returns the bytes before it. Errors: data_loss.
Result<std::string_view> unseal(std::string_view sealed, std::string_view context);

}  // namespace detent
