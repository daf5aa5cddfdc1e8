// Media of the contract's tests whose next write can be made to fail, each in the way its back end
// meets failures: the disk below RocksDB, the sessions of PostgreSQL, and for the store in memory,
// which cannot fail, the FaultStore that tests put around it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "store/fault_store.h"
#include "store/store.h"
#include "tests/contract/store_media.h"

#if defined(DETENT_POSTGRES_CONTRACT)
#include "base/thread.h"
#else
#include "store/rocksdb/open_store.h"
#include "tests/durability/power_cut_env.h"
#include "tests/durability/power_cut_file_system.h"
#endif

namespace detent {

// Each has, beside open():
//  - fail_next_write(WriteFault): the next write, a synced batch, fails.
//  - heal(): the trouble is over, and nothing but the store remembers it.
//  - kMayFailBefore: whether something else may be written first, and fail, so that a batch whose
//    fault is `applied` is not there.

#if defined(DETENT_POSTGRES_CONTRACT)

/// Ends the sessions that a write would need, or the session of a write whose commit is on the
/// disk, before it can answer: it waits for a standby that does not exist.
template <class Medium>
class FailingPostgres : public Medium {
 public:
  static constexpr bool kMayFailBefore = false;

  Result<std::unique_ptr<Store>> open() {
    if (has_failed_) {  // a store that has lost its session leaves its lease to run out
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
  /// Commits wait for the standby of this name from now on, or for none.
  void await_standby(const std::string& name) {
    execute(this->url_, "alter system set synchronous_standby_names = '" + name + "'");
    execute(this->url_, "select pg_reload_conf()");
    while (value_of(this->url_, "show synchronous_standby_names") != name) {
    }
    execute(this->url_, "checkpoint");  // by the process that has commits wait, once it has read it
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
  FaultStore* store_ = nullptr;  // the one that is open, or was
};

/// On a disk that takes no more bytes, or that takes them and fails to sync.
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

/// As RocksDbSettlingInlineMedium.
class FailingRocksDbSettlingInline : public FailingRocksDb {
 public:
  static constexpr std::string_view kName = "RocksDbSettlingInline";
  static constexpr bool kMayFailBefore = true;  // a settle

  Result<std::unique_ptr<Store>> open() {
    return open_with({.path = path(), .settle_tasks = 16, .settle_inline = true});
  }
};

using FailingMedia = testing::Types<FailingMemory, FailingRocksDb, FailingRocksDbSettlingInline>;

#endif

}  // namespace detent
