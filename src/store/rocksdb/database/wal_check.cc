#include "store/rocksdb/database/wal_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/open_file.h"
#include "detent/check.h"

namespace detent {

namespace {

// RocksDB's log format (its db/log_format.h): blocks of 32 KiB. A block has records:
//     checksum u32 · length u16 · type u8 · payload
// A record does not cross the end of its block. If fewer than 7 bytes are left, they are zeros. The
// checksum is the masked CRC-32C of type and payload. A write that does not fit into its block is
// split into several records.
constexpr std::size_t kBlockBytes = 32'768;
constexpr std::size_t kHeaderBytes = 7;
constexpr std::size_t kTypeOffset = 6;
enum RecordType : std::uint8_t { full = 1, first = 2, middle = 3, last = 4 };
// The payload of a write is a batch (RocksDB's db/write_batch.cc): sequence u64 · count u32 ·
// entries. Log data is an entry with a tag, a length and the bytes.
constexpr std::size_t kBatchHeaderBytes = 12;
constexpr char kLogDataTag = 3;
constexpr std::string_view kMark = "\x03\x08unsynced";
static_assert(kMark[0] == kLogDataTag && kMark[1] == char{kAfterUnsynced.size()} &&
              kMark.substr(2) == kAfterUnsynced);

std::uint32_t unmask(std::uint32_t masked) noexcept {
  const std::uint32_t rotated = masked - 0xA282'EAD8u;
  return (rotated >> 17) | (rotated << 15);
}

struct LogRecord {
  std::uint8_t type = 0;
  std::size_t size = 0;  // of header and payload
};

/// Returns the record at the start of `bytes` if it is intact. `bytes` must end at the end of the
/// block.
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

/// Returns the size of the log without the zeros at its end.
std::size_t size_written(std::string_view log) noexcept { return log.find_last_not_of('\0') + 1; }

/// The positions where a log ends.
struct LogEnd {
  std::size_t reserved_from = 0;  // only zeros follow
  std::size_t at = 0;             // the first damaged or missing record, or the end
  std::size_t whole_until = 0;    // the end of the last complete write
  bool is_torn = false;           // other bytes than reserved zeros follow whole_until
};

/// Reads records until one is not intact. Zeros at the end of the log are reserved space and are
/// ignored.
LogEnd find_end(std::string_view log) noexcept {
  const std::size_t reserved_from = size_written(log);
  bool in_write = false;  // between the first and the last record of a split write
  std::size_t write_begin = 0;
  std::size_t at = 0;
  while (at < reserved_from) {
    const std::string_view block = rest_of_block(log, at);
    if (block.size() < kHeaderBytes && all_zero(block)) {
      at += block.size();
      continue;
    }
    const std::optional<LogRecord> record = read_record(block);
    const bool begins = record && (record->type == full || record->type == first);
    if (!record || begins == in_write) {
      return {reserved_from, at, in_write ? write_begin : at, true};
    }
    if (record->type == first) write_begin = at;
    in_write = record->type == first || record->type == middle;
    at += record->size;
  }
  return {reserved_from, at, in_write ? write_begin : at, in_write};
}

/// Returns true if an intact record shows that all earlier writes were synced.
bool tells_of_sync(const LogRecord& record, std::string_view bytes) noexcept {
  if (record.type != full && record.type != first) return false;
  const std::string_view payload = bytes.substr(kHeaderBytes, record.size - kHeaderBytes);
  // The first part of a split write can be too short to contain the marker.
  if (record.type == first && payload.size() < kMark.size() + kBatchHeaderBytes) return false;
  return !payload.substr(std::min(payload.size(), kBatchHeaderBytes)).starts_with(kMark);
}

/// Returns true if a record that tells_of_sync() starts at or after `at`. A damaged header does not
/// tell where the next record starts. So if there is no intact record at a position, the search
/// goes on at the next byte.
bool sync_is_told_from(std::string_view log, std::size_t at) noexcept {
  log = log.substr(0, size_written(log) + kBlockBytes);
  while (at < log.size()) {
    const std::string_view block = rest_of_block(log, at);
    const std::optional<LogRecord> record = read_record(block);
    if (record && tells_of_sync(*record, block)) return true;
    at += record ? record->size : 1;
  }
  return false;
}

LogState state_of(std::string_view log, const LogEnd& end) noexcept {
  if (!end.is_torn) return LogState::intact;
  return sync_is_told_from(log, end.at + 1) ? LogState::damaged : LogState::torn_tail;
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  std::string bytes;
  if (size >= 0) {
    bytes.resize(static_cast<std::size_t>(size));
    file.seekg(0).read(bytes.data(), size);
  }
  if (!file) return Error{ErrorCode::unavailable, "cannot read '" + path + "'", ""};
  return bytes;
}

/// Cuts a file off at `size`, durably.
Result<void> cut_file(const std::string& path, std::size_t size) {
  const OpenFile file(path, O_WRONLY);
  if (file.is_open() && ::ftruncate(file.descriptor(), static_cast<off_t>(size)) == 0 &&
      file.sync()) {
    return ok();
  }
  return Error{ErrorCode::unavailable,
               "cannot truncate '" + path + "' to " + std::to_string(size) +
                   " bytes: " + std::generic_category().message(errno),
               ""};
}

Error damaged_log(const DataFolder& folder, const std::string& name) {
  return folder.damaged("its log " + name +
                        " has a record in the middle that does not match its checksum");
}

/// Cuts off the incomplete end of log `name`, so that later writes do not turn it into damage in
/// the middle. The `newer` logs are emptied: they contain only unsynced writes.
Result<void> cut_torn(const DataFolder& folder, const std::string& name, std::size_t whole_until,
                      std::span<const std::string> newer) {
  // RocksDB would replay the newer logs in spite of the gap. The newest log is emptied first: if
  // the process is killed before the end, the next start finds the incomplete log again.
  for (; !newer.empty(); newer = newer.first(newer.size() - 1)) {
    TRY(cut_file(folder.path() + "/" + newer.back(), 0));
  }
  return cut_file(folder.path() + "/" + name, whole_until);
}

/// Cuts off reserved space, and repairs the first incomplete log. `logs` must be sorted, oldest
/// first. The logs after the incomplete one are emptied.
Result<void> mend(const DataFolder& folder, std::span<const std::string> logs,
                  const OnCutTail& on_cut_tail) {
  for (std::size_t i = 0; i < logs.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string log, read_file(folder.path() + "/" + logs[i]));
    const LogEnd end = find_end(log);
    // Otherwise a log would become longer when it is cut off.
    DETENT_CHECK(end.whole_until <= end.at && end.at <= log.size());
    DETENT_CHECK(end.whole_until <= end.reserved_from || !end.is_torn);
    const std::span<const std::string> newer = logs.subspan(i + 1);
    const LogState state = state_of(log, end);
    if (state == LogState::intact) {
      if (end.at < log.size()) TRY(cut_file(folder.path() + "/" + logs[i], end.at));
      continue;
    }
    bool is_damaged = state == LogState::damaged;
    std::size_t discarded = end.reserved_from - end.whole_until;
    for (const std::string& name : newer) {
      if (is_damaged) break;
      ASSIGN_OR_RETURN(const std::string later, read_file(folder.path() + "/" + name));
      is_damaged = sync_is_told_from(later, 0);
      discarded += size_written(later);
    }
    if (is_damaged) return damaged_log(folder, logs[i]);
    if (on_cut_tail) on_cut_tail({logs[i], end.whole_until, discarded});
    return cut_torn(folder, logs[i], end.whole_until, newer);
  }
  return ok();
}

}  // namespace

LogState examine_log(std::string_view log) noexcept { return state_of(log, find_end(log)); }

Result<void> mend_logs(const DataFolder& folder, const OnCutTail& on_cut_tail) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, folder.log_files());
  TRY(mend(folder, names, on_cut_tail));
  // RocksDB reports a manifest without one complete write.
  ASSIGN_OR_RETURN(const std::optional<std::string> manifest, folder.manifest_file());
  if (!manifest) return ok();
  ASSIGN_OR_RETURN(const std::string edits, read_file(folder.path() + "/" + *manifest));
  if (find_end(edits).whole_until == 0) return ok();
  return mend(folder, std::span(&*manifest, 1), on_cut_tail);
}

}  // namespace detent
