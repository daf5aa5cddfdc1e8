#include "store/rocksdb/settle.h"

#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "detent/check.h"
#include "store/meta_format.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/meta_keys.h"
#include "store/rocksdb/database/range_scan.h"
#include "store/rocksdb/database/rocksdb_error.h"

namespace detent {

namespace {

constexpr std::size_t kRemovalsABatch = 10'000;

/// Lowers the priority of this thread, because no caller waits for a settle. (On Linux a priority
/// belongs to a single thread.) If that is not permitted, the priority stays as it is.
void give_way() noexcept {
  constexpr int kNice = 10;
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, kNice));
}

}  // namespace

Result<void> remove_unsettled(OpenDb& db, TaskId settled_to) {
  RangeScan scan(db.db(), db.ids(), {.begin = id_key(TaskId{settled_to.value + 1})});
  while (scan.is_valid()) {
    // The entry of an id and the record that it names are removed in one batch. If the process is
    // killed between two batches, the next start finds the remaining entries by their ids.
    Changes changes(db);
    for (std::size_t i = 0; i < kRemovalsABatch && scan.is_valid(); ++i, scan.next()) {
      const Result<TaskId> id = parse_id_key(scan.key());
      if (!id) return db.damaged("a key of the index by id is malformed");
      const Result<Place> place = parse_id_value(*id, scan.value());
      if (!place) return db.damaged("the place of task " + to_string(*id) + " is malformed");
      changes.erase_record(*place);
      changes.erase_id(*id);
    }
    const rocksdb::Status status = changes.write(Durability::buffered);
    if (!status.ok()) return db.open_error(status);
  }
  if (!scan.status().ok()) return db.open_error(scan.status());
  return ok();
}

Settle::~Settle() {
  abandon();
  thread_.join();
}

void Settle::start(const SettleRange& range) {
  DETENT_CHECK(!is_running_);
  DETENT_CHECK(range.after < range.upto);
  DETENT_CHECK(changed_.empty());  // otherwise corrections of an earlier settle are missing
  is_running_ = true;
  upto_ = range.upto;
  is_abandoned_.store(false, std::memory_order_relaxed);
  const rocksdb::Snapshot* const snapshot = db_.db().GetSnapshot();
  if (mode_ == Mode::foreground) {
    run(range, snapshot);
    return;
  }
  try {
    thread_ = Thread([this, range, snapshot] {
      give_way();
      run(range, snapshot);
    });
  } catch (const std::system_error& error) {
    db_.db().ReleaseSnapshot(snapshot);
    const MutexLock lock(mu_);
    outcome_ = Error{ErrorCode::unavailable,
                     "settle tasks: cannot start a thread: " + std::string(error.what()), ""};
  }
}

void Settle::run(const SettleRange& range, const rocksdb::Snapshot* snapshot) {
  Result<Settled> outcome = settle_tables(db_, range, snapshot, is_abandoned_);
  const MutexLock lock(mu_);
  outcome_ = std::move(outcome);
  done_.notify_all();
}

/// Only the first change of a task tells where the snapshot has it.
void Settle::changed(TaskId id, const std::optional<Place>& before) {
  if (is_running_ && id <= upto_) changed_.try_emplace(id.value, before);
}

std::optional<Result<Settled>> Settle::poll() {
  if (!is_running_) return std::nullopt;
  std::optional<Result<Settled>> outcome;
  {
    const MutexLock lock(mu_);
    outcome = std::exchange(outcome_, std::nullopt);
  }
  if (!outcome) return std::nullopt;
  thread_.join();
  if (!*outcome) finished();
  return outcome;
}

Result<Settled> Settle::wait() {
  DETENT_CHECK(is_running_);
  {
    const MutexLock lock(mu_);
    while (!outcome_) done_.wait(mu_);
  }
  return *poll();
}

void Settle::abandon() noexcept { is_abandoned_.store(true, std::memory_order_relaxed); }

Result<void> Settle::stage_corrections(const Settled& settled, std::size_t most,
                                       const AcceptedIndex& accepted, Changes& changes) {
  DETENT_CHECK(is_running_ && settled.to <= upto_);
  for (auto it = changed_.begin(); it != changed_.end() && most > 0;
       it = changed_.erase(it), --most) {
    const auto& [value, before] = *it;
    const TaskId id{value};
    if (id > settled.to) continue;
    const std::optional<Place> now = accepted.find(id);
    if (before && before != now) changes.erase_record(*before);
    if (!now) {
      if (before) changes.erase_id(id);
      continue;
    }
    std::string raw;
    const rocksdb::Status status =
        db_.db().Get(rocksdb::ReadOptions(), db_.accepted(), id_key(id), &raw);
    if (!status.ok()) return to_error("settle task " + to_string(id), status);
    changes.put_settled(*now, split_accepted(id, raw).record);
  }
  return ok();
}

Result<void> Settle::stage_finish(const Settled& settled, TaskId settled_from,
                                  const AcceptedIndex& accepted, Changes& changes) {
  DETENT_CHECK(settled.to > settled_from);
  TRY(stage_corrections(settled, changed_.size(), accepted, changes));
  DETENT_CHECK(changed_.empty());
  changes.erase_accepted(settled_from, settled.to);
  changes.set_meta(kSettledToKey, number_bytes(settled.to.value));
  return ok();
}

void Settle::finished() {
  DETENT_CHECK(is_running_);
  changed_.clear();
  is_running_ = false;
}

}  // namespace detent
