#include "store/memory_store.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "store/record_format.h"
#include "store/store_error.h"

namespace detent {

void MemoryDisk::flip_bit(DueKey place, std::size_t bit) {
  const auto found = due_.find(place);
  DETENT_CHECK(found != due_.end());
  std::string& record = found->second;
  char& byte = record[bit / 8 % record.size()];
  byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1u << (bit % 8)));
}

MemoryStore::MemoryStore(MemoryDisk& disk) : disk_(disk) { disk_.is_open_ = true; }

MemoryStore::~MemoryStore() { disk_.is_open_ = false; }

Result<std::unique_ptr<Store>> MemoryStore::open(MemoryDisk& disk) {
  if (disk.is_open_) {
    return Error{ErrorCode::unavailable, "open store: the memory disk is in use by another store",
                 ""};
  }
  return std::unique_ptr<Store>(new MemoryStore(disk));
}

Result<void> MemoryStore::write(const WriteBatch& batch, Durability /*durability*/) {
  for (const WriteBatch::Put& change : batch.puts) put(change);
  for (const DueKey place : batch.erases) erase(place);
  for (const QueueCounts& counts : batch.counts) disk_.counts_[counts.queue] = counts;
  disk_.last_id_ = std::max(disk_.last_id_, batch.last_id);
  return ok();
}

void MemoryStore::put(const WriteBatch::Put& put) {
  const DueKey to = put.to.place;
  DETENT_CHECK(to.id == put.to.task.id);
  DETENT_CHECK(to > kFirstDueKey);
  if (put.from) {
    DETENT_CHECK(put.from->id == to.id);
    erase(*put.from);
  }
  DETENT_CHECK(disk_.ids_.emplace(to.id, to.at).second);
  disk_.due_.emplace(to, encode_record(put.to.task));
  disk_.last_id_ = std::max(disk_.last_id_, to.id);
}

void MemoryStore::erase(DueKey place) {
  DETENT_CHECK(disk_.due_.erase(place) == 1);
  DETENT_CHECK(disk_.ids_.erase(place.id) == 1);
}

Result<DuePage> MemoryStore::read_due(DueKey after, WallTime until, std::size_t limit) {
  DETENT_CHECK(limit > 0);
  DuePage page;
  for (auto at = disk_.due_.upper_bound(after);
       at != disk_.due_.end() && at->first.at <= until && page.tasks.size() < limit; ++at) {
    const auto& [place, record] = *at;
    if (Result<Task> task = decode_record(place.id, record)) {
      page.tasks.push_back({place, *std::move(task)});
    } else {
      page.damaged.push_back(place);
    }
  }
  page.more = page.tasks.size() == limit;
  return page;
}

Result<std::vector<Result<Task>>> MemoryStore::read_at(std::span<const DueKey> places) {
  std::vector<Result<Task>> tasks;
  tasks.reserve(places.size());
  for (const DueKey place : places) {
    const auto found = disk_.due_.find(place);
    if (found == disk_.due_.end()) {
      tasks.emplace_back(not_stored(place));
    } else {
      tasks.push_back(decode_record(place.id, found->second));
    }
  }
  return tasks;
}

Result<std::optional<StoredTask>> MemoryStore::find(TaskId id) {
  const auto found = disk_.ids_.find(id);
  if (found == disk_.ids_.end()) return std::optional<StoredTask>();
  const DueKey place{found->second, id};
  ASSIGN_OR_RETURN(Task task, decode_record(id, disk_.due_.at(place)));
  return std::optional<StoredTask>({place, std::move(task)});
}

Result<void> MemoryStore::quarantine(DueKey place) {
  const auto found = disk_.due_.find(place);
  if (found == disk_.due_.end()) return ok();
  disk_.quarantine_[place] = found->second;
  erase(place);
  return ok();
}

Result<std::vector<QueueCounts>> MemoryStore::queue_counts() {
  std::vector<QueueCounts> all;
  all.reserve(disk_.counts_.size());
  for (const auto& [queue, counts] : disk_.counts_) all.push_back(counts);
  return all;
}

Result<std::uint64_t> MemoryStore::quarantined() { return disk_.quarantine_.size(); }

TaskId MemoryStore::last_id() const noexcept { return disk_.last_id_; }

Result<std::uint64_t> MemoryStore::begin_epoch() { return ++disk_.epoch_; }

}  // namespace detent
