// The fixture of the contract tests. It opens stores one after another on a medium that outlives
// them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"
#include "tests/contract/store_media.h"

namespace detent {

// NOLINTBEGIN(readability-identifier-naming): the names GoogleTest looks for
inline void PrintTo(const Place& place, std::ostream* out) {
  constexpr const char* kNames[] = {"due", "ready", "dead", "ended"};
  *out << kNames[static_cast<std::size_t>(place.lane)] << " queue " << place.queue << " priority "
       << place.priority << " at " << place.at.time_since_epoch().count() << " ms, id "
       << place.id.value;
}
inline void PrintTo(const TaskId& id, std::ostream* out) { *out << "id " << id.value; }
inline void PrintTo(const Task& task, std::ostream* out) {
  *out << "task " << task.id.value << " " << task.payload.data.substr(0, 40);
}
inline void PrintTo(const StoredTask& stored, std::ostream* out) {
  PrintTo(stored.place, out);
  *out << ": " << stored.task.payload.data.substr(0, 40);
}
inline void PrintTo(const KeyRecord& record, std::ostream* out) {
  *out << "key " << record.queue << "/" << record.key << " for " << record.id.value;
  if (record.expires_at) *out << " until " << record.expires_at->time_since_epoch().count();
}
inline void PrintTo(const QueueRecord& record, std::ostream* out) {
  *out << "queue " << record.number << " " << record.queue << " " << record.waiting << " waiting";
}
inline void PrintTo(const ScheduleRecord& record, std::ostream* out) {
  *out << "schedule " << record.schedule.name << ", " << record.progress.made << " made";
}
inline void PrintTo(const DueCount& count, std::ostream* out) {
  *out << (count.bin.width == DueBin::Width::minute ? "minute " : "day ") << count.bin.number
       << ": " << count.count;
}
// NOLINTEND(readability-identifier-naming)

inline std::vector<Place> places_of(const TaskPage& page) {
  std::vector<Place> places;
  for (const StoredTask& stored : page.tasks) places.push_back(stored.place);
  return places;
}

/// The code of the error; std::nullopt if there is no error.
template <class T>
std::optional<ErrorCode> error_code_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error().code);
}

template <class Medium>
class StoreFixture : public testing::Test {
 protected:
  static constexpr std::size_t kAll = 100'000;

  void SetUp() override { reopen(); }

  void close() { store_.reset(); }
  void reopen() {
    close();
    auto opened = medium_.open();
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
  }
  /// Closes the store, damages a record and opens the store again.
  void damage(Place place, std::size_t bit = 77) {
    close();
    medium_.flip_bit(place, bit);
    reopen();
  }

  /// The same with the record of a schedule.
  void damage_schedule(const std::string& name, std::size_t bit) {
    close();
    medium_.flip_schedule_bit(name, bit);
    reopen();
  }
  /// The same with the record of a key.
  void damage_key(std::uint32_t queue, const std::string& key, std::size_t bit) {
    close();
    medium_.flip_key_bit(queue, key, bit);
    reopen();
  }

  /// Closes the store, removes a key from the order of expiry and opens the store again.
  void drop_expiry(const KeyRecord& record) {
    close();
    medium_.drop_expiry(record);
    reopen();
  }

  void write(const WriteBatch& batch, Durability durability = Durability::synced) {
    const Result<void> written = store_->write(batch, durability);
    ASSERT_TRUE(written) << written.error().message;
  }
  /// A page of a whole lane.
  TaskPage page(Lane lane, std::uint32_t queue = 0, std::size_t limit = kAll) {
    return store_->read(begin_of(lane, queue), end_of(lane, queue), limit).value();
  }
  /// A page of the due order: places after `after`, up to and including the instant `until`.
  TaskPage due_page(Place after, WallTime until, std::size_t limit = kAll) {
    return store_->read(after, last_at(Lane::due, until), limit).value();
  }
  std::vector<Place> lane_places(Lane lane, std::uint32_t queue = 0) {
    return places_of(page(lane, queue));
  }
  Result<Task> read_one(Place place) {
    return std::move(store_->read_at(std::span(&place, 1)).value().at(0));
  }

  Medium medium_;
  std::unique_ptr<Store> store_;
};

#if defined(DETENT_POSTGRES_CONTRACT)
using Media = testing::Types<PostgresMedium, PostgresShardMedium>;
#else
using Media =
    testing::Types<MemoryMedium, RocksDbMedium, RocksDbSettlingMedium, RocksDbSettlingInlineMedium>;
#endif

class MediumNames {
 public:
  template <class Medium>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest's
    return std::string(Medium::kName);
  }
};

}  // namespace detent
