// Media for the contract tests whose next write can be made to fail. Each fails in the way of its
// back end: with RocksDB, the disk fails; with PostgreSQL, the sessions end. The store in memory
// cannot fail, so a FaultStore is put around it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "store/store.h"
#include "store/testing/fault_store.h"
#include "tests/contract/store_media.h"

#if defined(DETENT_POSTGRES_CONTRACT)
#include "base/thread.h"
#else
#include "store/rocksdb/open_store.h"
#include "tests/durability/power_cut_env.h"
#include "tests/durability/power_cut_file_system.h"
#endif

namespace detent {

// In addition to open(), each medium has:
//  - fail_next_write(WriteFault): makes the next write fail, which must be a synced batch.
//  - heal(): ends the fault. Only the store still remembers it.
//  - kMayFailBefore: true if the store may write other data before the batch, and that write may
//    fail instead. Then the store does not have the batch, even if its fault is `applied`.

#if defined(DETENT_POSTGRES_CONTRACT)

/// Makes a write fail by ending sessions. For `not_applied`, it ends all sessions of the store
/// before the write. For `applied`, it ends the session after the commit is on disk, but before the
/// database answers. To have time for that, the commit waits for a standby that does not exist.
template <class Medium>
class FailingPostgres : public Medium {
 public:
  static constexpr bool kMayFailBefore = false;

  Result<std::unique_ptr<Store>> open() {
    if (has_failed_) {  // a store without a session cannot release its lease
      execute(this->url_,
              "set session_replication_role = replica; update detent.lease set until = now() - "
              "interval '1 ms'");
    }
    return Medium::open();
  }
  void fail_next_write(WriteFault fault) {
    has_failed_ = true;
    if (fault == WriteFault::not_applied) {
      execute(this->url_,
              "select pg_terminate_backend(pid, 10000) from pg_stat_activity where "
              "application_name like 'detent shard%' and datname = current_database()");
      return;
    }
    await_standby("nobody");
    is_failing_ = true;
    killer_ = Thread([this] {
      while (is_failing_) {
        execute(this->url_,
                "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = "
                "'SyncRep'");
      }
    });
  }
  void heal() {
    if (!is_failing_.exchange(false)) return;
    killer_.join();
    await_standby("");
  }

 private:
  /// From now on, commits wait for the standby with this name. If the name is empty, they do not
  /// wait.
  void await_standby(const std::string& name) {
    execute(this->url_, "alter system set synchronous_standby_names = '" + name + "'");
    execute(this->url_, "select pg_reload_conf()");
    while (value_of(this->url_, "show synchronous_standby_names") != name) {
    }
    execute(this->url_, "checkpoint");  // the checkpointer applies the setting before this returns
  }

  bool has_failed_ = false;
  std::atomic<bool> is_failing_ = false;
  Thread killer_;
};

using FailingMedia =
    testing::Types<FailingPostgres<PostgresMedium>, FailingPostgres<PostgresShardMedium>>;

#else

class FailingMemory : public MemoryMedium {
 public:
  static constexpr bool kMayFailBefore = false;

  Result<std::unique_ptr<Store>> open() {
    ASSIGN_OR_RETURN(std::unique_ptr<Store> memory, MemoryMedium::open());
    auto store = std::make_unique<FaultStore>(std::move(memory));
    store_ = store.get();
    return std::unique_ptr<Store>(std::move(store));
  }
  void fail_next_write(WriteFault fault) { store_->fail_write(1, fault); }
  void heal() {}

 private:
  FaultStore* store_ = nullptr;  // the open store, or the last one
};

/// On a disk that is full (`not_applied`), or on a disk that accepts bytes but fails to sync
/// (`applied`).
class FailingRocksDb {
 public:
  static constexpr std::string_view kName = "RocksDb";
  static constexpr bool kMayFailBefore = false;

  Result<std::unique_ptr<Store>> open() { return open_with({.path = folder_ / "data"}); }
  void fail_next_write(WriteFault fault) {
    if (fault == WriteFault::not_applied) {
      disk_.fail_appends_from(1);
    } else {
      disk_.fail_syncs_from(1);
    }
  }
  void heal() { disk_.heal(); }

 protected:
  Result<std::unique_ptr<Store>> open_with(const RocksDbStoreOptions& options) {
    return OpenStore::open(options, {.env = env_.get()});
  }
  std::string path() const { return folder_ / "data"; }

 private:
  static std::string made(std::string folder) {
    std::filesystem::create_directory(folder);
    return folder;
  }

  TestFolder folder_;
  PowerCutFileSystem disk_{made(folder_ / "data"), made(folder_ / "backing")};
  std::unique_ptr<rocksdb::Env> env_ = make_env(disk_);
};

/// Settles as RocksDbSettlingInlineMedium does.
class FailingRocksDbSettlingInline : public FailingRocksDb {
 public:
  static constexpr std::string_view kName = "RocksDbSettlingInline";
  static constexpr bool kMayFailBefore = true;  // a settle may run first

  Result<std::unique_ptr<Store>> open() {
    return open_with({.path = path(), .settle_tasks = 16, .settle_inline = true});
  }
};

using FailingMedia = testing::Types<FailingMemory, FailingRocksDb, FailingRocksDbSettlingInline>;

#endif

}  // namespace detent
