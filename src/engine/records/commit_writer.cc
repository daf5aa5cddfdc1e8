#include "engine/records/commit_writer.h"

#include <utility>

#include "detent/check.h"

namespace detent {

using std::chrono::milliseconds;

void CommitWriter::write_beside(std::function<bool()> is_wanted, WhileWriting meanwhile) {
  is_beside_wanted_ = std::move(is_wanted);
  meanwhile_ = std::move(meanwhile);
}

Result<void> CommitWriter::write(const WriteBatch& batch, Durability durability) {
  DETENT_CHECK(!stopped_by_);
  DETENT_CHECK(!is_writing_);
  if (!is_beside_wanted_ || !is_beside_wanted_()) return store_.write(batch, durability);
  is_writing_ = true;
  Result<void> written = store_.write_while(batch, durability, meanwhile_);
  is_writing_ = false;
  return written;
}

Result<void> CommitWriter::commit(const WriteBatch& batch) {
  if (stopped_by_) return *stopped_by_;
  const bool must_sync = std::exchange(must_sync_, false);
  // An empty batch may need a sync too, for earlier writes that are only buffered.
  if (batch.empty() && !must_sync) return ok();
  const bool is_synced = must_sync || sync_interval_ == milliseconds{0};
  const MonotonicTime start = clock_.now();
  if (Result<void> written = write(batch, is_synced ? Durability::synced : Durability::buffered);
      !written) {
    return stop(std::move(written).error());
  }
  if (!is_synced && !unsynced_since_) unsynced_since_ = start;
  time_.record(clock_.now() - start);
  ++commits_;
  tasks_ += batch.puts.size() + batch.erases.size();
  return ok();
}

Result<void> CommitWriter::write_moved(const WriteBatch& batch) {
  if (stopped_by_) return *stopped_by_;
  if (batch.empty()) return ok();
  DETENT_CHECK(!must_sync_);  // these changes would be synced with the next commit only
  if (Result<void> written = write(batch, Durability::buffered); !written) {
    return stop(std::move(written).error());
  }
  return ok();
}

Result<void> CommitWriter::sync_if_due() {
  if (!unsynced_since_ || clock_.now() - *unsynced_since_ < sync_interval_) return ok();
  unsynced_since_.reset();
  if (Result<void> synced = write({}, Durability::synced); !synced) {
    return stop(std::move(synced).error());
  }
  return ok();
}

std::optional<MonotonicTime> CommitWriter::next_sync() const noexcept {
  if (!unsynced_since_) return std::nullopt;
  return *unsynced_since_ + sync_interval_;
}

Error CommitWriter::stop(Error error) {
  if (stopped_by_) return *stopped_by_;  // this error follows from the first error
  error.code = ErrorCode::unavailable;
  stopped_by_ = with_context(kStoreFailed, std::move(error));
  return *stopped_by_;
}

}  // namespace detent
