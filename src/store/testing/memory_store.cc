#include "store/testing/memory_store.h"

#include <algorithm>

#include "detent/check.h"
#include "store/meta_format.h"
#include "store/record_format.h"
#include "store/schedule_format.h"
#include "store/store_error.h"

namespace detent {

namespace {

bool is_place_of_a_task(Place place) {
  const bool has_queue = place.lane == Lane::ready || place.lane == Lane::dead;
  return has_queue == (place.queue != 0) && (place.lane == Lane::ready || place.priority == 0) &&
         place.at >= WallTime{} && place.at < kNeverDue && place.id != TaskId{};
}

template <class Name>
bool all_differ(std::vector<Name> names) {
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

void flip(std::string& record, std::size_t bit) {
  char& byte = record[bit / 8 % record.size()];
  byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1u << (bit % 8)));
}

/// Checks the requirements that concern the batch alone. The requirements that concern the disk are
/// checked when the batch is applied.
void check_batch(const WriteBatch& batch) {
  std::vector<TaskId> tasks;
  for (const WriteBatch::Put& put : batch.puts) tasks.push_back(put.to.place.id);
  for (const Place place : batch.erases) tasks.push_back(place.id);
  DETENT_CHECK(all_differ(std::move(tasks)));

  DETENT_CHECK(all_differ(batch.removed_queues));
  std::vector<std::string> queues;
  for (const QueueRecord& record : batch.queues) queues.push_back(record.queue);
  DETENT_CHECK(all_differ(std::move(queues)));

  DETENT_CHECK(all_differ(batch.removed_schedules));
  std::vector<std::string> schedules;
  for (const ScheduleRecord& record : batch.schedules) schedules.push_back(record.schedule.name);
  DETENT_CHECK(all_differ(std::move(schedules)));

  std::vector<std::pair<std::uint32_t, std::string>> keys;
  for (const KeyRecord& record : batch.keys) keys.emplace_back(record.queue, record.key);
  DETENT_CHECK(all_differ(std::move(keys)));
}

}  // namespace

void MemoryDisk::flip_bit(Place place, std::size_t bit) {
  const auto found = records_.find(place);
  DETENT_CHECK(found != records_.end());
  flip(found->second, bit);
}

void MemoryDisk::flip_schedule_bit(const std::string& name, std::size_t bit) {
  const auto found = schedules_.find(name);
  DETENT_CHECK(found != schedules_.end());
  flip(found->second, bit);
}

void MemoryDisk::flip_key_bit(std::uint32_t queue, const std::string& key, std::size_t bit) {
  const auto found = keys_.find({queue, key});
  DETENT_CHECK(found != keys_.end());
  flip(found->second, bit);
}

void MemoryDisk::drop_expiry(std::uint32_t queue, const std::string& key) {
  std::erase_if(expiries_, [&](const auto& entry) { return entry.second == KeyName{queue, key}; });
}

MemoryStore::MemoryStore(MemoryDisk& disk) : disk_(disk) {
  DETENT_CHECK(!disk_.is_open_);
  disk_.is_open_ = true;
}

MemoryStore::~MemoryStore() { disk_.is_open_ = false; }

Result<std::unique_ptr<Store>> MemoryStore::open(MemoryDisk& disk) {
  if (disk.is_open_) {
    return Error{ErrorCode::unavailable, "open store: the memory disk is in use by another store",
                 ""};
  }
  return std::unique_ptr<Store>(new MemoryStore(disk));
}

Result<void> MemoryStore::write(const WriteBatch& batch, Durability /*durability*/) {
  DETENT_CHECK(disk_.is_open_);
  check_batch(batch);
  for (const WriteBatch::Put& change : batch.puts) put(change);
  for (const Place place : batch.erases) erase(place);
  for (const std::string& queue : batch.removed_queues) disk_.queues_.erase(queue);
  for (const QueueRecord& record : batch.queues) set_queue(record);
  for (const KeyRecord& record : batch.keys) set_key(record);
  for (const std::string& name : batch.removed_schedules) disk_.schedules_.erase(name);
  for (const ScheduleRecord& record : batch.schedules) {
    disk_.schedules_[record.schedule.name] = encode_schedule(record);
  }
  for (const auto& [bin, change] : batch.due_counts) {
    if ((disk_.due_counts_[bin] += change) == 0) disk_.due_counts_.erase(bin);
  }
  disk_.last_id_ = std::max(disk_.last_id_, batch.last_id);
  DETENT_CHECK(disk_.records_.size() == disk_.places_.size());
  return ok();
}

void MemoryStore::put(const WriteBatch::Put& put) {
  const Place to = put.to.place;
  DETENT_CHECK(is_place_of_a_task(to));
  DETENT_CHECK(to.id == put.to.task.id);
  if (put.from) {
    DETENT_CHECK(put.from->id == to.id);
    erase(*put.from);
  }
  DETENT_CHECK(disk_.places_.emplace(to.id, to).second);
  disk_.records_.emplace(to, encode_record(put.to.task));
  disk_.last_id_ = std::max(disk_.last_id_, to.id);
}

void MemoryStore::erase(Place place) {
  DETENT_CHECK(disk_.records_.erase(place) == 1);
  DETENT_CHECK(disk_.places_.erase(place.id) == 1);
}

void MemoryStore::set_queue(const QueueRecord& record) {
  DETENT_CHECK(record.number > 0);
  DETENT_CHECK(disk_.queue_names_.emplace(record.number, record.queue).first->second ==
               record.queue);
  const auto& stored = disk_.queues_.emplace(record.queue, record).first->second;
  DETENT_CHECK(stored.number == record.number);
  disk_.queues_[record.queue] = record;
}

void MemoryStore::set_key(const KeyRecord& record) {
  const std::string key = key_key(record.queue, record.key);
  const MemoryDisk::KeyName name{record.queue, record.key};
  disk_.keys_[name] = key_value(key, record);
  if (record.expires_at) disk_.expiries_.insert({*record.expires_at, name});
}

Result<TaskPage> MemoryStore::read(Place after, Place until, std::size_t limit) {
  DETENT_CHECK(limit > 0);
  DETENT_CHECK(after.lane == until.lane);
  DETENT_CHECK(after.queue == until.queue);
  TaskPage page;
  for (auto at = disk_.records_.upper_bound(after);
       at != disk_.records_.end() && at->first <= until && !page.read_to; ++at) {
    const auto& [place, record] = *at;
    add_to_page(page, limit, place, decode_record(place.id, record));
  }
  return page;
}

Result<TaskPage> MemoryStore::read_by_id(TaskId after, std::size_t limit) {
  DETENT_CHECK(limit > 0);
  TaskPage page;
  for (auto at = disk_.places_.upper_bound(after); at != disk_.places_.end() && !page.read_to;
       ++at) {
    const auto& [id, place] = *at;
    add_to_page(page, limit, place, decode_record(id, disk_.records_.at(place)));
  }
  return page;
}

Result<std::vector<Result<Task>>> MemoryStore::read_at(std::span<const Place> places) {
  std::vector<Result<Task>> tasks;
  tasks.reserve(places.size());
  for (const Place place : places) {
    const auto found = disk_.records_.find(place);
    if (found == disk_.records_.end()) {
      tasks.emplace_back(not_stored(place));
    } else {
      tasks.push_back(decode_record(place.id, found->second));
    }
  }
  return tasks;
}

Result<std::optional<StoredTask>> MemoryStore::find(TaskId id) {
  const auto found = disk_.places_.find(id);
  if (found == disk_.places_.end()) return std::optional<StoredTask>();
  const Place place = found->second;
  ASSIGN_OR_RETURN(Task task, decode_record(id, disk_.records_.at(place)));
  return std::optional<StoredTask>({place, std::move(task)});
}

Result<void> MemoryStore::quarantine(std::span<const Place> places) {
  for (const Place& place : places) {
    const auto found = disk_.records_.find(place);
    if (found == disk_.records_.end()) continue;
    disk_.quarantine_[place] = found->second;
    erase(place);
  }
  return ok();
}

Result<std::optional<KeyRecord>> MemoryStore::find_key(std::uint32_t queue, std::string_view key) {
  const auto found = disk_.keys_.find({queue, std::string(key)});
  if (found == disk_.keys_.end()) return std::optional<KeyRecord>();
  ASSIGN_OR_RETURN(KeyRecord record, parse_key_value(key_key(queue, key), found->second));
  return std::optional<KeyRecord>(std::move(record));
}

Result<KeyPage> MemoryStore::read_keys(std::uint32_t queue, std::string_view after,
                                       std::size_t limit) {
  DETENT_CHECK(limit > 0);
  KeyPage page;
  for (auto at = disk_.keys_.upper_bound({queue, std::string(after)});
       at != disk_.keys_.end() && at->first.first == queue && !page.read_to; ++at) {
    add_key_to_page(page, limit, key_key(queue, at->first.second), at->second);
  }
  return page;
}

/// True if the key exists and still expires at `at`. A damaged key counts as expired, because it is
/// useless.
bool MemoryStore::has_expired(const MemoryDisk::KeyName& name, WallTime at) const {
  const auto found = disk_.keys_.find(name);
  if (found == disk_.keys_.end()) return false;
  const Result<KeyRecord> record = parse_key_value(key_key(name.first, name.second), found->second);
  return !record || record->expires_at == at;
}

Result<std::size_t> MemoryStore::trim_keys(WallTime now, std::size_t limit) {
  std::size_t trimmed = 0;
  for (auto at = disk_.expiries_.begin();
       at != disk_.expiries_.end() && at->first <= now && trimmed < limit;) {
    const auto& [expires_at, name] = *at;
    if (has_expired(name, expires_at)) {
      disk_.keys_.erase(name);
      ++trimmed;
    }
    at = disk_.expiries_.erase(at);
  }
  return trimmed;
}

Result<std::vector<KeyRecord>> MemoryStore::wrong_expiries(std::span<const KeyRecord> records) {
  std::vector<KeyRecord> wrong;
  for (const KeyRecord& record : records) {
    if (!record.expires_at) continue;  // never wrong: trim_keys() checks the record of the key
    const MemoryDisk::KeyName name{record.queue, record.key};
    if (!disk_.expiries_.contains({*record.expires_at, name})) wrong.push_back(record);
  }
  return wrong;
}

Result<std::vector<Result<ScheduleRecord>>> MemoryStore::read_schedules() {
  std::vector<Result<ScheduleRecord>> all;
  all.reserve(disk_.schedules_.size());
  for (const auto& [name, bytes] : disk_.schedules_) all.push_back(decode_schedule(name, bytes));
  return all;
}

Result<std::vector<QueueRecord>> MemoryStore::queues() {
  std::vector<QueueRecord> all;
  all.reserve(disk_.queues_.size());
  for (const auto& [queue, record] : disk_.queues_) all.push_back(record);
  return all;
}

Result<std::vector<DueCount>> MemoryStore::due_counts() {
  std::vector<DueCount> all;
  all.reserve(disk_.due_counts_.size());
  for (const auto& [bin, count] : disk_.due_counts_) all.push_back({.bin = bin, .count = count});
  return all;
}

Result<std::uint64_t> MemoryStore::quarantined() { return disk_.quarantine_.size(); }

TaskId MemoryStore::last_id() const noexcept { return disk_.last_id_; }

std::uint32_t MemoryStore::last_queue_number() const noexcept {
  return disk_.queue_names_.empty() ? 0 : disk_.queue_names_.rbegin()->first;
}

Result<std::uint64_t> MemoryStore::begin_epoch() { return ++disk_.epoch_; }

}  // namespace detent
