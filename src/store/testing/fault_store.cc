#include "store/testing/fault_store.h"

#include <utility>

#include "detent/check.h"
#include "store/store_error.h"

namespace detent {

void FaultStore::fail_write(std::uint64_t n, WriteFault fault) {
  DETENT_CHECK(n > 0);
  planned_ = {.at = write_count_ + n, .fault = fault};
}

template <class Write>
auto FaultStore::faulty_write(Write write) -> decltype(write()) {
  ++write_count_;
  if (write_failed_) return earlier_write_failed();
  if (!planned_ || planned_->at != write_count_) return write();
  write_failed_ = true;
  // The outcome of this write does not matter: the caller gets the planned error in any case.
  if (planned_->fault == WriteFault::applied) static_cast<void>(write());
  return Error{ErrorCode::unavailable, "write store: planned fault", ""};
}

template <class Read>
auto FaultStore::faulty_read(Read read) -> decltype(read()) {
  ++read_count_;
  if (read_error_) return *read_error_;
  return read();
}

Result<void> FaultStore::write(const WriteBatch& batch, Durability durability) {
  return faulty_write([&] { return store_.write(batch, durability); });
}

Result<void> FaultStore::write_while(const WriteBatch& batch, Durability durability,
                                     const WhileWriting& meanwhile) {
  if (during_writes_) {
    during_writes_();
    Doorbell written(Doorbell::Ringer::work);
    written.ring();
    meanwhile(written);
  }
  return write(batch, durability);
}

Result<TaskPage> FaultStore::read(Place after, Place until, std::size_t limit) {
  last_page_after_ = after;
  return faulty_read([&] { return store_.read(after, until, limit); });
}

Result<TaskPage> FaultStore::read_by_id(TaskId after, std::size_t limit) {
  return faulty_read([&] { return store_.read_by_id(after, limit); });
}

Result<std::vector<Result<Task>>> FaultStore::read_at(std::span<const Place> places) {
  return faulty_read([&] { return store_.read_at(places); });
}

Result<std::optional<StoredTask>> FaultStore::find(TaskId id) {
  return faulty_read([&] { return store_.find(id); });
}

Result<std::vector<StoredTask>> FaultStore::find_all(std::span<const TaskId> ids) {
  return faulty_read([&] { return store_.find_all(ids); });
}

Result<void> FaultStore::quarantine(std::span<const Place> places) {
  return faulty_write([&] { return store_.quarantine(places); });
}

Result<std::optional<KeyRecord>> FaultStore::find_key(std::uint32_t queue, std::string_view key) {
  return faulty_read([&] { return store_.find_key(queue, key); });
}

Result<std::vector<KeyRecord>> FaultStore::find_keys(std::uint32_t queue,
                                                     std::span<const std::string> keys) {
  return faulty_read([&] { return store_.find_keys(queue, keys); });
}

Result<KeyPage> FaultStore::read_keys(std::uint32_t queue, std::string_view after,
                                      std::size_t limit) {
  return faulty_read([&] { return store_.read_keys(queue, after, limit); });
}

Result<std::size_t> FaultStore::trim_keys(WallTime now, std::size_t limit) {
  return faulty_write([&] { return store_.trim_keys(now, limit); });
}

Result<std::vector<KeyRecord>> FaultStore::wrong_expiries(std::span<const KeyRecord> records) {
  return faulty_read([&] { return store_.wrong_expiries(records); });
}

Result<std::vector<Result<ScheduleRecord>>> FaultStore::read_schedules() {
  return faulty_read([&] { return store_.read_schedules(); });
}

Result<std::vector<QueueRecord>> FaultStore::queues() {
  return faulty_read([&] { return store_.queues(); });
}

Result<std::vector<DueCount>> FaultStore::due_counts() {
  return faulty_read([&] { return store_.due_counts(); });
}

Result<std::uint64_t> FaultStore::quarantined() {
  return faulty_read([&] { return store_.quarantined(); });
}

Result<std::uint64_t> FaultStore::begin_epoch() {
  return faulty_write([&] { return store_.begin_epoch(); });
}

}  // namespace detent
