#include "store/rocksdb/task_keys.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "detent/check.h"
#include "store/meta_format.h"
#include "store/rocksdb/key_format.h"
#include "store/rocksdb/multi_get.h"
#include "store/rocksdb/rocksdb_error.h"
#include "store/rocksdb/slices.h"

namespace detent {

namespace {

/// Entries of the order of expiry that stand for nothing any more, looked at in one trim.
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
  const std::string end = key_key(queue + 1, "");
  const rocksdb::Slice upper = slice(end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> it(db_.db().NewIterator(options, db_.keys()));
  KeyPage page;
  for (it->Seek(lower); it->Valid() && !page.read_to; it->Next()) {
    if (view(it->key()) != lower) add_key_to_page(page, limit, view(it->key()), view(it->value()));
  }
  if (!it->status().ok()) return to_error("read keys", it->status());
  return page;
}

void TaskKeys::put(const KeyRecord& record) {
  if (!record.expires_at) return;
  const std::string key = expiry_key(*record.expires_at, key_key(record.queue, record.key));
  if (key < begin_) begin_ = key;
}

Result<std::size_t> TaskKeys::stage_trim(WallTime now, std::size_t limit, Changes& changes) {
  trimmed_to_ = begin_;
  std::size_t count = 0;
  std::size_t seen = 0;  // those that expire later by now cost a read, too
  const rocksdb::Slice lower_bound(begin_);
  rocksdb::ReadOptions options;
  options.iterate_lower_bound = &lower_bound;
  const std::unique_ptr<rocksdb::Iterator> it(db_.db().NewIterator(options, db_.key_expiry()));
  for (it->Seek(lower_bound); it->Valid() && count < limit && seen < limit + kMostStale;
       it->Next(), ++seen) {
    ASSIGN_OR_RETURN(const Expiry expiry, parse_expiry_key(view(it->key())));
    if (expiry.at > now) break;
    ASSIGN_OR_RETURN(const bool has_expired, this->has_expired(expiry.key_key, expiry.at));
    if (has_expired) {
      must(changes.batch().Delete(db_.keys(), slice(expiry.key_key)));
      ++count;
    }
    must(changes.batch().Delete(db_.key_expiry(), it->key()));
    trimmed_to_.assign(view(it->key())).push_back('\0');
  }
  if (!it->status().ok()) return to_error("trim keys", it->status());
  return count;
}

/// One that does not expire is never wrong: trimming asks the key itself.
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

/// Whether the key still says that it expires then. One that can't be read is of no more use.
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
