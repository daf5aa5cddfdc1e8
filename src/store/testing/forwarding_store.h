// A store that forwards each call to another store. Tests derive from it to change or count some
// calls. It does not override find_all(), find_keys() and write_while(). Their defaults in Store
// call other functions of this object, so they reach the overrides of the derived class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace detent {

/// `store` must outlive this object.
class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(Store& store) noexcept : store_(store) {}

  Result<void> write(const WriteBatch& batch, Durability durability) override {
    return store_.write(batch, durability);
  }
  Result<TaskPage> read(Place after, Place until, std::size_t limit) override {
    return store_.read(after, until, limit);
  }
  Result<TaskPage> read_by_id(TaskId after, std::size_t limit) override {
    return store_.read_by_id(after, limit);
  }
  Result<std::vector<Result<Task>>> read_at(std::span<const Place> places) override {
    return store_.read_at(places);
  }
  Result<std::optional<StoredTask>> find(TaskId id) override { return store_.find(id); }
  Result<void> quarantine(std::span<const Place> places) override {
    return store_.quarantine(places);
  }
  Result<std::optional<KeyRecord>> find_key(std::uint32_t queue, std::string_view key) override {
    return store_.find_key(queue, key);
  }
  Result<KeyPage> read_keys(std::uint32_t queue, std::string_view after,
                            std::size_t limit) override {
    return store_.read_keys(queue, after, limit);
  }
  Result<std::size_t> trim_keys(WallTime now, std::size_t limit) override {
    return store_.trim_keys(now, limit);
  }
  Result<std::vector<KeyRecord>> wrong_expiries(std::span<const KeyRecord> records) override {
    return store_.wrong_expiries(records);
  }
  Result<std::vector<Result<ScheduleRecord>>> read_schedules() override {
    return store_.read_schedules();
  }
  Result<std::vector<QueueRecord>> queues() override { return store_.queues(); }
  Result<std::vector<DueCount>> due_counts() override { return store_.due_counts(); }
  Result<std::uint64_t> quarantined() override { return store_.quarantined(); }
  TaskId last_id() const noexcept override { return store_.last_id(); }
  std::uint32_t last_queue_number() const noexcept override { return store_.last_queue_number(); }
  Result<std::uint64_t> begin_epoch() override { return store_.begin_epoch(); }
  Result<std::string> identity() override { return store_.identity(); }

 protected:
  Store& store_;
};

}  // namespace detent
