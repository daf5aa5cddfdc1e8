#include "store/fault_store.h"

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
  // The outcome of the write below does not matter: the caller learns of a failure either way.
  if (planned_->fault == WriteFault::applied) static_cast<void>(write());
  return Error{ErrorCode::unavailable, "write store: planned fault", ""};
}

template <class Read>
auto FaultStore::faulty_read(Read read) -> decltype(read()) {
  if (read_error_) return *read_error_;
  return read();
}

Result<void> FaultStore::write(const WriteBatch& batch, Durability durability) {
  return faulty_write([&] { return store_.write(batch, durability); });
}

Result<DuePage> FaultStore::read_due(DueKey after, WallTime until, std::size_t limit) {
  return faulty_read([&] { return store_.read_due(after, until, limit); });
}

Result<std::vector<Result<Task>>> FaultStore::read_at(std::span<const DueKey> places) {
  return faulty_read([&] { return store_.read_at(places); });
}

Result<std::optional<StoredTask>> FaultStore::find(TaskId id) {
  return faulty_read([&] { return store_.find(id); });
}

Result<void> FaultStore::quarantine(DueKey place) {
  return faulty_write([&] { return store_.quarantine(place); });
}

Result<std::vector<QueueCounts>> FaultStore::queue_counts() {
  return faulty_read([&] { return store_.queue_counts(); });
}

Result<std::uint64_t> FaultStore::quarantined() {
  return faulty_read([&] { return store_.quarantined(); });
}

TaskId FaultStore::last_id() const noexcept { return store_.last_id(); }

Result<std::uint64_t> FaultStore::begin_epoch() {
  return faulty_write([&] { return store_.begin_epoch(); });
}

}  // namespace detent
