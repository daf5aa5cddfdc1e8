#include "store/rocksdb/task_keys.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "store/meta_format.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/multi_get.h"
#include "store/rocksdb/database/range_scan.h"
#include "store/rocksdb/database/rocksdb_error.h"
#include "store/rocksdb/database/slices.h"

namespace detent {

namespace {

/// One trim reads at most this many outdated entries of the key_expiry family, in addition to the
/// entries of keys that it deletes.
constexpr std::size_t kMostStale = 1'000;

}  // namespace

Result<std::optional<KeyRecord>> TaskKeys::find(std::uint32_t queue, std::string_view key) {
  const std::string stored_key = key_key(queue, key);
  rocksdb::PinnableSlice value;
  const rocksdb::Status status =
      db_.db().Get(rocksdb::ReadOptions(), db_.keys(), stored_key, &value);
  if (status.IsNotFound()) return std::optional<KeyRecord>();
  if (!status.ok()) return to_error("find key", status);
  ASSIGN_OR_RETURN(KeyRecord record, parse_key_value(stored_key, view(value)));
  return std::optional<KeyRecord>(std::move(record));
}

Result<std::vector<KeyRecord>> TaskKeys::find_all(std::uint32_t queue,
                                                  std::span<const std::string> keys) {
  std::vector<std::string> stored_keys;
  stored_keys.reserve(keys.size());
  for (const std::string& key : keys) stored_keys.push_back(key_key(queue, key));
  std::sort(stored_keys.begin(), stored_keys.end());
  stored_keys.erase(std::unique(stored_keys.begin(), stored_keys.end()), stored_keys.end());
  std::vector<KeyRecord> found;
  found.reserve(stored_keys.size());
  Result<void> read = ok();
  const auto take = [&](std::size_t n, const rocksdb::Status& status, const rocksdb::Slice& value) {
    if (status.ok()) {
      Result<KeyRecord> record = parse_key_value(stored_keys[n], view(value));
      if (record) found.push_back(*std::move(record));
    } else if (!status.IsNotFound() && !status.IsCorruption()) {
      read = to_error("find keys", status);
    }
  };
  multi_get(db_.db(), db_.keys(), stored_keys, take);
  TRY(read);
  return found;
}

Result<KeyPage> TaskKeys::read(std::uint32_t queue, std::string_view after, std::size_t limit) {
  DETENT_CHECK(limit > 0);
  const std::string lower = key_key(queue, after);
  RangeScan scan(db_.db(), db_.keys(), {lower, key_key(queue + 1, "")});
  KeyPage page;
  for (; scan.is_valid() && !page.read_to; scan.next()) {
    if (scan.key() != lower) add_key_to_page(page, limit, scan.key(), scan.value());
  }
  if (!scan.status().ok()) return to_error("read keys", scan.status());
  return page;
}

void TaskKeys::put(const KeyRecord& record) {
  DETENT_CHECK(!record.key.empty());
  if (!record.expires_at) return;
  const std::string key = expiry_key(*record.expires_at, key_key(record.queue, record.key));
  if (key < begin_) begin_ = key;
}

Result<std::size_t> TaskKeys::stage_trim(WallTime now, std::size_t limit, Changes& changes) {
  trimmed_to_ = begin_;
  std::size_t count = 0;
  std::size_t seen = 0;  // includes outdated entries, because each of them costs a read
  RangeScan scan(db_.db(), db_.key_expiry(), {.begin = begin_});
  for (; scan.is_valid() && count < limit && seen < limit + kMostStale; scan.next(), ++seen) {
    ASSIGN_OR_RETURN(const Expiry expiry, parse_expiry_key(scan.key()));
    if (expiry.at > now) break;
    ASSIGN_OR_RETURN(const bool has_expired, this->has_expired(expiry.key_key, expiry.at));
    if (has_expired) {
      must(changes.batch().Delete(db_.keys(), slice(expiry.key_key)));
      ++count;
    }
    must(changes.batch().Delete(db_.key_expiry(), slice(scan.key())));
    trimmed_to_.assign(scan.key()).push_back('\0');
    DETENT_CHECK(trimmed_to_ > begin_);
  }
  if (!scan.status().ok()) return to_error("trim keys", scan.status());
  return count;
}

/// A record without an expiry is always right, because trimming never deletes a key that does not
/// expire.
Result<std::vector<KeyRecord>> TaskKeys::wrong_expiries(std::span<const KeyRecord> records) {
  std::vector<KeyRecord> wrong;
  for (const KeyRecord& record : records) {
    if (!record.expires_at) continue;
    const std::string key = expiry_key(*record.expires_at, key_key(record.queue, record.key));
    rocksdb::PinnableSlice value;
    const rocksdb::Status status =
        db_.db().Get(rocksdb::ReadOptions(), db_.key_expiry(), key, &value);
    if (status.IsNotFound() || status.IsCorruption()) {
      wrong.push_back(record);
    } else if (!status.ok()) {
      return to_error("read expiry of key", status);
    }
  }
  return wrong;
}

/// Returns true if the stored key still has this expiry. A damaged key counts as expired: it is
/// useless, so trimming may delete it.
Result<bool> TaskKeys::has_expired(std::string_view key, WallTime at) {
  rocksdb::PinnableSlice value;
  const rocksdb::Status status =
      db_.db().Get(rocksdb::ReadOptions(), db_.keys(), slice(key), &value);
  if (status.IsNotFound()) return false;
  if (!status.ok()) return to_error("trim keys", status);
  const Result<KeyRecord> record = parse_key_value(key, view(value));
  return !record || record->expires_at == at;
}

}  // namespace detent
