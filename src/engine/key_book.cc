#include "engine/key_book.h"

namespace detent {

Result<std::optional<KeyRecord>> KeyBook::find(std::uint32_t queue, std::string_view key,
                                               WallTime now) {
  ASSIGN_OR_RETURN(std::optional<KeyRecord> record, record_of(queue, key));
  if (record && record->expires_at && *record->expires_at <= now) record.reset();
  return record;
}

void KeyBook::put(KeyRecord record) {
  std::pair key(record.queue, record.key);
  staged_.insert_or_assign(std::move(key), std::move(record));
}

Result<void> KeyBook::expire(std::uint32_t queue, std::string_view key, TaskId id,
                             WallTime expires_at) {
  ASSIGN_OR_RETURN(std::optional<KeyRecord> record, record_of(queue, key));
  if (!record || record->id != id) return ok();
  record->expires_at = expires_at;
  put(*std::move(record));
  return ok();
}

std::vector<KeyRecord> KeyBook::take() {
  std::vector<KeyRecord> records;
  records.reserve(staged_.size());
  for (auto& [key, record] : staged_) records.push_back(std::move(record));
  staged_.clear();
  return records;
}

Result<std::optional<KeyRecord>> KeyBook::record_of(std::uint32_t queue, std::string_view key) {
  const auto staged = staged_.find({queue, std::string(key)});
  if (staged != staged_.end()) return std::optional<KeyRecord>(staged->second);
  return store_.find_key(queue, key);
}

}  // namespace detent
