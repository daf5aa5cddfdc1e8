#include "store/rocksdb/database/wal_env.h"

#include <rocksdb/file_system.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"

namespace detent {

namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// Reserving a whole log at once would not make syncs faster, and would take more disk space.
constexpr std::size_t kReserve = std::size_t{4} << 20;

bool is_log(std::string_view name) { return name.ends_with(".log"); }
bool is_manifest(std::string_view name) { return name.find("/MANIFEST-") != name.npos; }

}  // namespace

/// The state that the guard shares with its files: the first failure, and the newest open log.
class WalEnv::Latch {
 public:
  IOStatus get() const {
    const MutexLock lock(mu_);
    return failure_;
  }
  /// Keeps only the first failure.
  void set(const IOStatus& failure) {
    const MutexLock lock(mu_);
    if (failure_.ok()) failure_ = failure;
  }

  /// made() is called for each new log, and closed() when a log is closed.
  void made(Log* log) {
    const MutexLock lock(last_mu_);
    last_ = log;
  }
  void closed(const Log* log) {
    const MutexLock lock(last_mu_);
    if (last_ == log) last_ = nullptr;
  }
  /// Syncs the newest log, if it is still open. An error is kept by the log.
  void sync_last();

 private:
  mutable Mutex mu_;
  IOStatus failure_ DETENT_GUARDED_BY(mu_);
  Mutex last_mu_;  // taken before mu_
  Log* last_ DETENT_GUARDED_BY(last_mu_) = nullptr;
};

/// An open log. Reports success to RocksDB even if an operation fails, and keeps the failure.
class WalEnv::Log final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  Log(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<Latch> latch)
      : FSWritableFileOwnerWrapper(std::move(file)), latch_(std::move(latch)) {
    latch_->made(this);
  }
  ~Log() override { latch_->closed(this); }

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return keep([&] { return target()->Append(data, options, debug); });
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info, IODebugContext* debug) override {
    return keep([&] { return target()->Append(data, options, info, debug); });
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* debug) override {
    return keep([&] { return target()->Flush(options, debug); });
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return keep([&] { return target()->Sync(options, debug); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return keep([&] { return target()->Fsync(options, debug); });
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    latch_->closed(this);
    return target()->Close(options, debug);
  }
  void SetPreallocationBlockSize(std::size_t size) override {
    target()->SetPreallocationBlockSize(std::min(size, kReserve));
  }

 private:
  template <class Operation>
  IOStatus keep(Operation operation) {
    if (!latch_->get().ok()) return IOStatus::OK();
    if (const IOStatus status = operation(); !status.ok()) latch_->set(status);
    return IOStatus::OK();
  }

  const std::shared_ptr<Latch> latch_;
};

void WalEnv::Latch::sync_last() {
  const MutexLock lock(last_mu_);
  if (last_ != nullptr) static_cast<void>(last_->Sync(IOOptions(), nullptr));
}

/// An open manifest. After a failure of a log, appends to it fail.
class WalEnv::Manifest final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  Manifest(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<Latch> latch)
      : FSWritableFileOwnerWrapper(std::move(file)), latch_(std::move(latch)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    const IOStatus failure = latch_->get();
    return failure.ok() ? target()->Append(data, options, debug) : failure;
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info, IODebugContext* debug) override {
    const IOStatus failure = latch_->get();
    return failure.ok() ? target()->Append(data, options, info, debug) : failure;
  }

 private:
  const std::shared_ptr<Latch> latch_;
};

class WalEnv::Files final : public rocksdb::FileSystemWrapper {
 public:
  Files(const std::shared_ptr<rocksdb::FileSystem>& target, std::shared_ptr<Latch> latch,
        std::string checkpoints)
      : FileSystemWrapper(target), latch_(std::move(latch)), checkpoints_(std::move(checkpoints)) {}
  const char* Name() const override { return "WalEnv"; }

  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    if (is_of_checkpoint(name)) return target()->NewWritableFile(name, options, file, debug);
    rocksdb::FileOptions with_reserve = options;
    if (is_log(name)) {
      latch_->sync_last();
      with_reserve.fallocate_with_keep_size = false;
    }
    IOStatus status = target()->NewWritableFile(name, with_reserve, file, debug);
    if (!status.ok()) return status;
    if (is_log(name)) *file = std::make_unique<Log>(std::move(*file), latch_);
    if (is_manifest(name)) *file = std::make_unique<Manifest>(std::move(*file), latch_);
    return status;
  }
  // When RocksDB closes the database, it deletes files that it does not know. After a failure
  // another store may already use the folder, so these files may be in use.
  IOStatus DeleteFile(const std::string& name, const IOOptions& options,
                      IODebugContext* debug) override {
    const IOStatus failure = latch_->get();
    return failure.ok() ? target()->DeleteFile(name, options, debug) : failure;
  }

 private:
  bool is_of_checkpoint(std::string_view name) const {
    return !checkpoints_.empty() && name.starts_with(checkpoints_);
  }

  const std::shared_ptr<Latch> latch_;
  const std::string checkpoints_;
};

WalEnv::WalEnv(rocksdb::Env& target, std::string checkpoints)
    : EnvWrapper(&target), latch_(std::make_shared<Latch>()) {
  file_system_ = std::make_shared<Files>(target.GetFileSystem(), latch_, std::move(checkpoints));
  system_clock_ = target.GetSystemClock();
}

WalEnv::~WalEnv() = default;

rocksdb::Status WalEnv::status() const { return latch_->get(); }

void WalEnv::fail(const std::string& why) { latch_->set(IOStatus::IOError(why)); }

}  // namespace detent
