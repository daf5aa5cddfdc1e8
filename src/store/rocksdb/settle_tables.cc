#include "store/rocksdb/settle_tables.h"

#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "store/rocksdb/database/key_format.h"
#include "store/rocksdb/database/range_scan.h"
#include "store/rocksdb/database/rocksdb_error.h"
#include "store/rocksdb/database/slices.h"

namespace detent {

namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::size_t kTasksBetweenChecks = 1'024;

Error settle_error(const rocksdb::Status& status) { return to_error("settle tasks", status); }

/// Keeps copies of byte strings in large blocks. The returned views stay valid until this object is
/// destroyed.
class Blocks {
 public:
  std::string_view keep(std::string_view bytes) {
    if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < bytes.size()) {
      blocks_.emplace_back().reserve(std::max(kBlockBytes, bytes.size()));
    }
    std::string& block = blocks_.back();
    block.append(bytes);
    return std::string_view(block).substr(block.size() - bytes.size());
  }

 private:
  std::deque<std::string> blocks_;
};

/// A table file for one column family. The file is created with the first entry.
class Table {
 public:
  enum class Filter : std::uint8_t { with, without };

  Table(OpenDb& db, rocksdb::ColumnFamilyHandle* family, Filter filter)
      : family_(family),
        path_(db.settle_folder() + "/" + family->GetName() + ".sst"),
        writer_(rocksdb::EnvOptions(db.db().GetDBOptions()), db.db().GetOptions(family), family,
                /*invalidate_page_cache=*/true, rocksdb::Env::IOPriority::IO_TOTAL,
                /*skip_filters=*/filter == Filter::without) {}

  /// Requires: `key` is greater than all keys that were added before.
  rocksdb::Status add(std::string_view key, std::string_view value) {
    rocksdb::Status status;
    if (!is_open_) status = writer_.Open(path_);
    is_open_ = true;
    return status.ok() ? writer_.Put(slice(key), slice(value)) : status;
  }
  rocksdb::Status finish() { return is_open_ ? writer_.Finish() : rocksdb::Status(); }

  /// Adds the table to the list of tables to ingest, if it has entries.
  void collect(std::vector<rocksdb::IngestExternalFileArg>& args) const {
    if (!is_open_) return;
    rocksdb::IngestExternalFileArg& arg = args.emplace_back();
    arg.column_family = family_;
    arg.external_files = {path_};
    arg.options.move_files = true;
    arg.options.write_global_seqno = false;
    arg.options.allow_blocking_flush = false;
  }

 private:
  rocksdb::ColumnFamilyHandle* family_;
  std::string path_;
  rocksdb::SstFileWriter writer_;
  bool is_open_ = false;
};

class Job {
 public:
  Job(OpenDb& db, const SettleRange& range, const std::atomic<bool>& is_abandoned)
      : db_(db), range_(range), is_abandoned_(is_abandoned) {}

  Result<void> read(const rocksdb::Snapshot* snapshot);
  Result<void> write();
  Result<void> ingest();
  const Settled& settled() const noexcept { return settled_; }

 private:
  struct DueEntry {
    WallTime at{};
    TaskId id;
    std::string_view record;
  };
  Result<void> check_abandoned() const;
  Result<void> add(TaskId id, std::string_view value);
  bool is_full() const noexcept {
    return settled_.tasks >= range_.max_tasks || settled_.bytes >= range_.max_bytes;
  }

  OpenDb& db_;
  SettleRange range_;
  const std::atomic<bool>& is_abandoned_;
  Blocks blocks_;
  std::vector<DueEntry> due_;
  std::vector<std::pair<Place, std::string_view>> others_;
  // The tables of `ids` do not overlap, because each settle moves higher ids than the one before.
  // So a lookup needs no filter to find the right table.
  Table ids_table_{db_, db_.ids(), Table::Filter::without};
  Table due_table_{db_, db_.due(), Table::Filter::with};
  Table lanes_table_{db_, db_.lanes(), Table::Filter::with};
  Settled settled_;
};

Result<void> Job::check_abandoned() const {
  // Relaxed: the flag orders no other data.
  if (!is_abandoned_.load(std::memory_order_relaxed)) return ok();
  return Error{ErrorCode::unavailable, "settle tasks: abandoned", ""};
}

Result<void> Job::add(TaskId id, std::string_view value) {
  DETENT_CHECK(id > range_.after && id <= range_.upto && id > settled_.to);
  const AcceptedValue accepted = split_accepted(id, value);
  const std::string_view record = blocks_.keep(accepted.record);
  if (accepted.place == front_place(id)) settled_.has_front = true;
  if (accepted.place.lane == Lane::due) {
    due_.push_back({accepted.place.at, id, record});
  } else {
    others_.emplace_back(accepted.place, record);
  }
  // Tasks come in the order of their ids, so this table needs no sorting.
  const rocksdb::Status status = ids_table_.add(id_key(id), id_value(accepted.place));
  if (!status.ok()) return settle_error(status);
  settled_.to = id;
  settled_.bytes += value.size();
  ++settled_.tasks;
  return ok();
}

Result<void> Job::read(const rocksdb::Snapshot* snapshot) {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  options.fill_cache = false;
  options.readahead_size = kBlockBytes;
  RangeScan scan(db_.db(), db_.accepted(),
                 {id_key(TaskId{range_.after.value + 1}), id_key(TaskId{range_.upto.value + 1})},
                 options);
  for (; scan.is_valid(); scan.next()) {
    if (settled_.tasks % kTasksBetweenChecks == 0) TRY(check_abandoned());
    ASSIGN_OR_RETURN(const TaskId id, parse_id_key(scan.key()));
    TRY(add(id, scan.value()));
    if (is_full()) return ok();
  }
  if (!scan.status().ok()) return settle_error(scan.status());
  settled_.to = range_.upto;
  settled_.is_whole = true;
  return ok();
}

Result<void> Job::write() {
  std::sort(due_.begin(), due_.end(), [](const DueEntry& a, const DueEntry& b) {
    return a.at != b.at ? a.at < b.at : a.id < b.id;
  });
  std::sort(others_.begin(), others_.end());
  const auto place_of = [](const DueEntry& entry) {
    Place place = front_place(entry.id);
    place.at = entry.at;
    return place;
  };
  DETENT_CHECK(due_.size() + others_.size() == settled_.tasks);
  std::size_t count = 0;
  for (const DueEntry& entry : due_) {
    if (++count % kTasksBetweenChecks == 0) TRY(check_abandoned());
    const rocksdb::Status status = due_table_.add(place_key(place_of(entry)), entry.record);
    if (!status.ok()) return settle_error(status);
  }
  for (const auto& [place, record] : others_) {
    const rocksdb::Status status = lanes_table_.add(place_key(place), record);
    if (!status.ok()) return settle_error(status);
  }
  for (Table* const table : {&ids_table_, &due_table_, &lanes_table_}) {
    const rocksdb::Status status = table->finish();
    if (!status.ok()) return settle_error(status);
  }
  return check_abandoned();
}

Result<void> Job::ingest() {
  std::vector<rocksdb::IngestExternalFileArg> args;
  for (const Table* const table : {&ids_table_, &due_table_, &lanes_table_}) table->collect(args);
  if (args.empty()) return ok();
  const rocksdb::Status status = db_.ingest(args);
  if (!status.ok()) return settle_error(status);
  return ok();
}

Result<void> run(OpenDb& db, Job& job, const rocksdb::Snapshot* snapshot) {
  Result<void> read = db.clean_settle_folder();
  if (read) read = job.read(snapshot);
  db.db().ReleaseSnapshot(snapshot);
  TRY(read);
  db.reached(StoreStep::tasks_read);
  TRY(job.write());
  db.reached(StoreStep::tables_written);
  TRY(job.ingest());
  db.reached(StoreStep::tables_ingested);
  return ok();
}

}  // namespace

Result<Settled> settle_tables(OpenDb& db, const SettleRange& range,
                              const rocksdb::Snapshot* snapshot,
                              const std::atomic<bool>& is_abandoned) {
  Job job(db, range, is_abandoned);
  const Result<void> done = run(db, job, snapshot);
  // Removes the remaining files. If this fails, the next settle or the next start reports it.
  static_cast<void>(db.clean_settle_folder());
  TRY(done);
  return job.settled();
}

}  // namespace detent
