#include "engine/records/key_index.h"

#include "detent/check.h"

namespace detent {

Result<std::optional<KeyRecord>> KeyIndex::find(std::uint32_t queue, std::string_view key,
                                                WallTime now) {
  ASSIGN_OR_RETURN(std::optional<KeyRecord> record, record_of(queue, key));
  if (record && record->expires_at && *record->expires_at <= now) record.reset();
  return record;
}

void KeyIndex::put(KeyRecord record) {
  DETENT_CHECK(!record.key.empty());
  std::pair key(record.queue, record.key);
  staged_.insert_or_assign(std::move(key), std::move(record));
}

Result<void> KeyIndex::expire(std::uint32_t queue, std::string_view key, TaskId id,
                              WallTime expires_at) {
  Result<std::optional<KeyRecord>> record = record_of(queue, key);
  if (!record && record.error().code == ErrorCode::data_loss) {
    record = std::optional(KeyRecord{.queue = queue, .key = std::string(key), .id = id});
  }
  if (!record) return std::move(record).error();
  if (!*record || (*record)->id != id) return ok();
  DETENT_CHECK((*record)->queue == queue && (*record)->key == key);
  (*record)->expires_at = expires_at;
  put(**std::move(record));
  return ok();
}

std::vector<KeyRecord> KeyIndex::take() {
  std::vector<KeyRecord> records;
  records.reserve(staged_.size());
  for (auto& [key, record] : staged_) records.push_back(std::move(record));
  staged_.clear();
  ahead_.clear();
  return records;
}

void KeyIndex::read_ahead(std::uint32_t queue, std::span<const std::string> keys) {
  queue_ahead_ = queue;
  ahead_.clear();
  Result<std::vector<KeyRecord>> records = store_.find_keys(queue, keys);
  if (!records) return;
  for (KeyRecord& record : *records) {
    std::string key = record.key;
    ahead_.emplace(std::move(key), std::move(record));
  }
}

std::vector<TaskId> KeyIndex::tasks_ahead() const {
  std::vector<TaskId> ids;
  ids.reserve(ahead_.size());
  for (const auto& [key, record] : ahead_) ids.push_back(record.id);
  return ids;
}

Result<std::optional<KeyRecord>> KeyIndex::record_of(std::uint32_t queue, std::string_view key) {
  const std::pair name(queue, std::string(key));
  const auto staged = staged_.find(name);
  if (staged != staged_.end()) return std::optional<KeyRecord>(staged->second);
  const auto ahead = ahead_.find(name.second);
  if (queue == queue_ahead_ && ahead != ahead_.end()) return std::optional(ahead->second);
  return store_.find_key(queue, key);
}

}  // namespace detent
