#include "store/rocksdb/wal_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace detent {

namespace {

// RocksDB's log format (its db/log_format.h): blocks of 32 KiB; in a block, records of
//   checksum u32 · length u16 · type u8 · payload
// that do not cross its end; fewer than 7 bytes left are filled with zeros. The checksum is the
// masked CRC-32C of type and payload. A write that is longer than its block is split.
constexpr std::size_t kBlockBytes = 32'768;
constexpr std::size_t kHeaderBytes = 7;
constexpr std::size_t kTypeOffset = 6;
enum RecordType : std::uint8_t { full = 1, first = 2, middle = 3, last = 4 };

std::uint32_t unmask(std::uint32_t masked) noexcept {
  const std::uint32_t rotated = masked - 0xA282'EAD8u;
  return (rotated >> 17) | (rotated << 15);
}

struct LogRecord {
  std::uint8_t type = 0;
  std::size_t size = 0;  // header and payload
};

/// The record at the start of `bytes`, which end where its block ends, if it is intact.
std::optional<LogRecord> read_record(std::string_view bytes) noexcept {
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  const auto byte = [&bytes](std::size_t i) -> std::uint32_t {
    return static_cast<unsigned char>(bytes[i]);
  };
  const auto type = static_cast<std::uint8_t>(byte(kTypeOffset));
  const std::size_t size = kHeaderBytes + (byte(4) | byte(5) << 8);
  if (type < full || type > last || size > bytes.size()) return std::nullopt;
  const std::uint32_t masked = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
  if (crc32c(bytes.substr(kTypeOffset, size - kTypeOffset)) != unmask(masked)) return std::nullopt;
  return LogRecord{type, size};
}

std::string_view rest_of_block(std::string_view log, std::size_t at) noexcept {
  return log.substr(at, kBlockBytes - at % kBlockBytes);
}

bool all_zero(std::string_view bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == '\0'; });
}

/// Where a log is not as it should be.
struct Fault {
  std::size_t at = 0;           // the first record that is not intact, or the end
  std::size_t whole_until = 0;  // the writes up to here are whole
};

/// Nothing when all is well.
std::optional<Fault> find_fault(std::string_view log) noexcept {
  bool in_write = false;  // between a first and its last
  std::size_t write_begin = 0;
  for (std::size_t at = 0; at < log.size();) {
    const std::string_view block = rest_of_block(log, at);
    if (block.size() < kHeaderBytes && all_zero(block)) {
      at += block.size();
      continue;
    }
    const std::optional<LogRecord> record = read_record(block);
    const bool begins = record && (record->type == full || record->type == first);
    if (!record || begins == in_write) return Fault{at, in_write ? write_begin : at};
    if (record->type == first) write_begin = at;
    in_write = record->type == first || record->type == middle;
    at += record->size;
  }
  if (in_write) return Fault{log.size(), write_begin};
  return std::nullopt;
}

/// Whether an intact record that begins a write is anywhere after `at`. Tries every byte: after a
/// damaged header nothing tells where the next record is.
bool write_begins_after(std::string_view log, std::size_t at) noexcept {
  for (++at; at < log.size(); ++at) {
    const std::optional<LogRecord> record = read_record(rest_of_block(log, at));
    if (record && (record->type == full || record->type == first)) return true;
  }
  return false;
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  std::string bytes;
  if (size >= 0) {
    bytes.resize(static_cast<std::size_t>(size));
    file.seekg(0).read(bytes.data(), size);
  }
  if (!file) return Error{ErrorCode::unavailable, "read '" + path + "' failed", ""};
  return bytes;
}

bool is_empty_file(const std::string& path) {
  std::error_code ignored;  // what cannot be asked is looked at
  return std::filesystem::file_size(path, ignored) == 0;
}

/// Cuts a file off, durably.
Result<void> cut_file(const std::string& path, std::size_t size) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool is_cut =
      file >= 0 && ::ftruncate(file, static_cast<off_t>(size)) == 0 && ::fsync(file) == 0;
  if (file >= 0) ::close(file);
  if (!is_cut) return Error{ErrorCode::unavailable, "cut off '" + path + "' failed", ""};
  return ok();
}

/// A tail that was torn goes, so that what is written from now on does not make it the middle.
Result<void> mend_log(const DataFolder& folder, const std::string& name, bool may_be_torn) {
  const std::string path = folder.path() + "/" + name;
  ASSIGN_OR_RETURN(const std::string log, read_file(path));
  const std::optional<Fault> fault = find_fault(log);
  if (!fault) return ok();
  if (may_be_torn && examine_log(log) == LogState::torn_tail) {
    return cut_file(path, fault->whole_until);
  }
  return Error{ErrorCode::data_loss,
               folder.name() + " is damaged: its log " + name +
                   " has a record in the middle that does not match its checksum; restore it from "
                   "a backup",
               ""};
}

}  // namespace

LogState examine_log(std::string_view log) noexcept {
  const std::optional<Fault> fault = find_fault(log);
  if (!fault) return LogState::intact;
  return write_begins_after(log, fault->at) ? LogState::damaged : LogState::torn_tail;
}

Result<void> mend_logs(const DataFolder& folder) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, folder.log_files());
  // A start that was cut off may have left newer logs in which nothing was written yet.
  while (!names.empty() && is_empty_file(folder.path() + "/" + names.back())) names.pop_back();
  for (const std::string& name : names) {
    TRY(mend_log(folder, name, &name == &names.back()));
  }
  // A manifest without one whole write is none, which RocksDB tells.
  ASSIGN_OR_RETURN(const std::optional<std::string> manifest, folder.manifest_file());
  if (!manifest) return ok();
  ASSIGN_OR_RETURN(const std::string edits, read_file(folder.path() + "/" + *manifest));
  const std::optional<Fault> fault = find_fault(edits);
  if (fault && fault->whole_until == 0) return ok();
  return mend_log(folder, *manifest, true);
}

}  // namespace detent
