#include "tests/durability/power_cut_file_system.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "detent/check.h"
#include "tests/durability/power_cut_bytes.h"

namespace detent {

namespace {

namespace fs = std::filesystem;
using rocksdb::IOStatus;

IOStatus power_is_off() { return IOStatus::IOError("the power is off"); }
/// Returns true for tables, which can be written even without power. RocksDB 7.8 with assertions,
/// as Debian builds it, aborts if a compaction that leaves no key cannot write its table. After a
/// real power cut there is no process that could abort.
bool goes_on_without_power(const std::string& path) { return path.ends_with(".sst"); }
IOStatus not_modelled(const char* what) { return IOStatus::NotSupported(what); }

std::string normal(const std::string& path) { return fs::path(path).lexically_normal().string(); }
std::string without_last_slash(std::string path) {
  if (path.ends_with('/')) path.pop_back();
  return path;
}
std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }
std::string name_of(const std::string& path) { return fs::path(path).filename().string(); }

/// Counts `left` down to 0, where it stays. Returns true when it is 0.
bool counts_down(std::uint64_t& left, std::uint64_t never) {
  if (left == never) return false;
  if (left > 0) --left;
  return left == 0;
}

class SilentLogger final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
  std::size_t GetLogFileSize() const override { return 0; }
};

}  // namespace

/// A file open for appending.
class PowerCutFileSystem::WatchedFile final : public rocksdb::FSWritableFile {
 public:
  enum class Reserve : std::uint8_t { shows, does_not };
  WatchedFile(PowerCutFileSystem& owner, std::shared_ptr<Bytes> bytes,
              std::unique_ptr<rocksdb::FSWritableFile> real, Reserve reserve)
      : owner_(owner), bytes_(std::move(bytes)), real_(std::move(real)), reserve_(reserve) {}

  using rocksdb::FSWritableFile::Append;
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& /*options*/,
                  rocksdb::IODebugContext* /*debug*/) override {
    return owner_.append(*bytes_, *real_, data);
  }
  IOStatus Flush(const rocksdb::IOOptions& /*options*/,
                 rocksdb::IODebugContext* /*debug*/) override {
    return owner_.is_off() && !bytes_->is_table ? power_is_off() : IOStatus::OK();
  }
  IOStatus Sync(const rocksdb::IOOptions& /*options*/,
                rocksdb::IODebugContext* /*debug*/) override {
    return owner_.sync(*bytes_);
  }
  IOStatus Truncate(std::uint64_t size, const rocksdb::IOOptions& options,
                    rocksdb::IODebugContext* debug) override {
    return size == GetFileSize(options, debug) ? IOStatus::OK() : not_modelled("truncate");
  }
  IOStatus Allocate(std::uint64_t offset, std::uint64_t size, const rocksdb::IOOptions& /*options*/,
                    rocksdb::IODebugContext* /*debug*/) override {
    if (reserve_ == Reserve::does_not) return IOStatus::OK();
    return owner_.reserve(*bytes_, offset + size);
  }
  IOStatus Close(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    owner_.end_reserve(*bytes_);
    return real_->Close(options, debug);
  }
  bool IsSyncThreadSafe() const override { return true; }
  std::uint64_t GetFileSize(const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* debug) override {
    return real_->GetFileSize(options, debug);
  }

 private:
  PowerCutFileSystem& owner_;
  const std::shared_ptr<Bytes> bytes_;  // shared with the names of the file
  const std::unique_ptr<rocksdb::FSWritableFile> real_;
  const Reserve reserve_;
};

/// A folder open for syncing.
class PowerCutFileSystem::WatchedFolder final : public rocksdb::FSDirectory {
 public:
  WatchedFolder(PowerCutFileSystem& owner, std::string path)
      : owner_(owner), path_(std::move(path)) {}

  IOStatus Fsync(const rocksdb::IOOptions& /*options*/,
                 rocksdb::IODebugContext* /*debug*/) override {
    return owner_.sync_folder(path_);
  }
  IOStatus Close(const rocksdb::IOOptions& /*options*/,
                 rocksdb::IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }

 private:
  PowerCutFileSystem& owner_;
  const std::string path_;
};

PowerCutFileSystem::PowerCutFileSystem(std::string folder, std::string backing, Lie lie)
    : FileSystemWrapper(rocksdb::FileSystem::Default()),
      folder_(without_last_slash(normal(folder))),
      backing_(std::move(backing)),
      lie_(lie) {
  const MutexLock lock(mu_);
  DETENT_CHECK(fs::is_empty(backing_));
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    const std::shared_ptr<Bytes> bytes = new_bytes();
    fs::create_hard_link(entry.path(), bytes->path);
    bytes->size = bytes->synced = entry.file_size();
    Folder& parent = folders_[entry.path().parent_path().string()];
    parent.now[entry.path().filename().string()] = bytes;
    parent.durable = parent.now;
  }
}

PowerCutFileSystem::~PowerCutFileSystem() = default;

// ---- power and faults ----

void PowerCutFileSystem::cut_at(std::uint64_t n) {
  DETENT_CHECK(n > 0);
  const MutexLock lock(mu_);
  DETENT_CHECK(until_cut_ > 0);
  until_cut_ = n;
}

void PowerCutFileSystem::turn_off() {
  const MutexLock lock(mu_);
  until_cut_ = 0;
}

bool PowerCutFileSystem::is_off() const {
  const MutexLock lock(mu_);
  return until_cut_ == 0;
}

void PowerCutFileSystem::cut(Rng& rng, Tear tear) {
  const MutexLock lock(mu_);
  until_cut_ = 0;
  std::set<std::shared_ptr<Bytes>> torn;
  for (auto& [path, folder] : folders_) {
    for (const auto& [name, bytes] : folder.now) fs::remove(fs::path(path) / name);
    folder.changes.resize(any_part(folder.changes.size(), rng));
    for (const Names& change : folder.changes) {
      for (const auto& [name, bytes] : change) folder.durable[name] = bytes;
    }
    for (const auto& [name, bytes] : folder.durable) {
      if (!bytes) continue;
      fs::create_directories(path);  // it may have been removed without this object
      const Tear how = name.ends_with(".log") ? tear : Tear::bytes;
      if (torn.insert(bytes).second) bytes->tear(rng, how);
      fs::create_hard_link(bytes->path, fs::path(path) / name);
    }
  }
  folders_.clear();
}

void PowerCutFileSystem::fail_syncs_from(std::uint64_t n) {
  DETENT_CHECK(n > 0);
  const MutexLock lock(mu_);
  until_sync_fails_ = n;
}

void PowerCutFileSystem::fail_appends_from(std::uint64_t n) {
  DETENT_CHECK(n > 0);
  const MutexLock lock(mu_);
  until_append_fails_ = n;
}

void PowerCutFileSystem::limit_space(std::uint64_t bytes) {
  const MutexLock lock(mu_);
  space_ = bytes;
}

void PowerCutFileSystem::heal() {
  const MutexLock lock(mu_);
  until_sync_fails_ = until_append_fails_ = space_ = kNever;
  has_failed_ = false;
}

bool PowerCutFileSystem::has_failed() const {
  const MutexLock lock(mu_);
  return has_failed_;
}

std::uint64_t PowerCutFileSystem::operations() const {
  const MutexLock lock(mu_);
  return operations_;
}

/// Counts an operation. Returns `going` if the power goes off during this operation.
PowerCutFileSystem::Power PowerCutFileSystem::use_power() {
  if (until_cut_ == 0) return Power::off;
  ++operations_;
  return counts_down(until_cut_, kNever) ? Power::going : Power::on;
}

// ---- bytes ----

std::shared_ptr<PowerCutFileSystem::Bytes> PowerCutFileSystem::new_bytes() {
  return std::make_shared<Bytes>(backing_ + "/" + std::to_string(++files_made_));
}

IOStatus PowerCutFileSystem::append(Bytes& bytes, rocksdb::FSWritableFile& real,
                                    const rocksdb::Slice& data) {
  const MutexLock lock(mu_);
  const Power power = use_power();
  if (power == Power::off) {
    return bytes.is_table ? real.Append(data, {}, nullptr) : power_is_off();
  }
  if (counts_down(until_append_fails_, kNever)) {
    has_failed_ = true;
    return IOStatus::IOError("append: EIO");
  }
  const std::size_t fits = std::min<std::uint64_t>(data.size(), space_);
  IOStatus status = real.Append(rocksdb::Slice(data.data(), fits), {}, nullptr);
  if (!status.ok()) return status;
  bytes.size += fits;
  if (space_ != kNever) space_ -= fits;
  if (power == Power::going && !bytes.is_table) return power_is_off();
  if (fits == data.size()) return IOStatus::OK();
  has_failed_ = true;
  IOStatus full = IOStatus::NoSpace("append: ENOSPC");
  full.SetRetryable(true);  // as in RocksDB's own file system
  return full;
}

IOStatus PowerCutFileSystem::reserve(Bytes& bytes, std::uint64_t size) {
  const MutexLock lock(mu_);
  const Power power = use_power();
  if (power == Power::off) return power_is_off();
  if (space_ != kNever) return IOStatus::NoSpace("reserve: ENOSPC");
  fs::resize_file(bytes.path, size);
  bytes.reserved = size;
  return power == Power::going ? power_is_off() : IOStatus::OK();
}

void PowerCutFileSystem::end_reserve(const Bytes& bytes) {
  const MutexLock lock(mu_);
  if (bytes.reserved > bytes.size) fs::resize_file(bytes.path, bytes.size);
}

/// The common part of syncs of files and folders. A power cut during a sync counts as a cut before
/// the sync, because the sync guarantees nothing in this case.
IOStatus PowerCutFileSystem::begin_sync() {
  if (use_power() != Power::on) return power_is_off();
  if (!counts_down(until_sync_fails_, kNever)) return IOStatus::OK();
  has_failed_ = true;
  return IOStatus::IOError("sync: EIO");
}

IOStatus PowerCutFileSystem::sync(Bytes& bytes) {
  const MutexLock lock(mu_);
  IOStatus status = begin_sync();
  if (until_cut_ == 0 && bytes.is_table) return IOStatus::OK();
  if (!status.ok()) {
    bytes.has_failed_to_sync = true;
  } else if (lie_ != Lie::file_syncs && !bytes.has_failed_to_sync) {
    bytes.synced = bytes.size;
  }
  return status;
}

// ---- names ----

IOStatus PowerCutFileSystem::sync_folder(const std::string& path) {
  const MutexLock lock(mu_);
  IOStatus status = begin_sync();
  if (status.ok() && lie_ != Lie::folder_syncs) {
    Folder& folder = folders_[path];
    folder.durable = folder.now;
    folder.changes.clear();
  }
  return status;
}

std::shared_ptr<PowerCutFileSystem::Bytes> PowerCutFileSystem::find(const std::string& path) {
  const Names& names = folders_[folder_of(path)].now;
  const auto it = names.find(name_of(path));
  return it == names.end() ? nullptr : it->second;
}

void PowerCutFileSystem::change(const std::string& path, const Names& names) {
  Folder& folder = folders_[path];
  for (const auto& [name, bytes] : names) {
    if (bytes) {
      folder.now[name] = bytes;
    } else {
      folder.now.erase(name);
    }
  }
  folder.changes.push_back(names);
}

bool PowerCutFileSystem::is_watched(const std::string& path) const {
  return path.starts_with(folder_ + "/");
}

IOStatus PowerCutFileSystem::NewWritableFile(const std::string& path,
                                             const rocksdb::FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* file,
                                             rocksdb::IODebugContext* debug) {
  const std::string name = normal(path);
  if (!is_watched(name)) return target()->NewWritableFile(path, options, file, debug);
  const MutexLock lock(mu_);
  const Power power = use_power();
  const bool is_table = goes_on_without_power(name);
  if (power == Power::off && !is_table) return power_is_off();
  std::shared_ptr<Bytes> bytes = new_bytes();
  bytes->is_table = is_table;
  std::unique_ptr<rocksdb::FSWritableFile> real;
  IOStatus made = target()->NewWritableFile(bytes->path, options, &real, debug);
  if (!made.ok()) return made;
  fs::remove(name);
  fs::create_hard_link(bytes->path, name);
  if (power == Power::off) {
    folders_[folder_of(name)].now[name_of(name)] = bytes;
  } else {
    change(folder_of(name), {{name_of(name), bytes}});
  }
  if (power == Power::going && !is_table) return power_is_off();
  const bool shows = options.allow_fallocate && !options.fallocate_with_keep_size;
  *file = std::make_unique<WatchedFile>(
      *this, std::move(bytes), std::move(real),
      shows ? WatchedFile::Reserve::shows : WatchedFile::Reserve::does_not);
  return IOStatus::OK();
}

IOStatus PowerCutFileSystem::ReopenWritableFile(const std::string& path,
                                                const rocksdb::FileOptions& options,
                                                std::unique_ptr<rocksdb::FSWritableFile>* file,
                                                rocksdb::IODebugContext* debug) {
  const std::string name = normal(path);
  if (!is_watched(name)) return target()->ReopenWritableFile(path, options, file, debug);
  std::shared_ptr<Bytes> bytes;
  {
    const MutexLock lock(mu_);
    if (until_cut_ == 0) return power_is_off();
    bytes = find(name);
  }
  if (!bytes) return NewWritableFile(path, options, file, debug);
  std::unique_ptr<rocksdb::FSWritableFile> real;
  IOStatus status = target()->ReopenWritableFile(bytes->path, options, &real, debug);
  if (!status.ok()) return status;
  *file = std::make_unique<WatchedFile>(*this, std::move(bytes), std::move(real),
                                        WatchedFile::Reserve::does_not);
  return status;
}

IOStatus PowerCutFileSystem::NewDirectory(const std::string& path,
                                          const rocksdb::IOOptions& options,
                                          std::unique_ptr<rocksdb::FSDirectory>* folder,
                                          rocksdb::IODebugContext* debug) {
  const std::string name = without_last_slash(normal(path));
  if (name != folder_ && !is_watched(name)) {
    return target()->NewDirectory(path, options, folder, debug);
  }
  if (!fs::is_directory(name)) return IOStatus::PathNotFound(path);
  *folder = std::make_unique<WatchedFolder>(*this, name);
  return IOStatus::OK();
}

IOStatus PowerCutFileSystem::DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                                        rocksdb::IODebugContext* debug) {
  const std::string name = normal(path);
  const MutexLock lock(mu_);
  if (!is_watched(name) || !find(name)) return target()->DeleteFile(path, options, debug);
  const Power power = use_power();
  if (power == Power::off) return power_is_off();
  fs::remove(name);
  change(folder_of(name), {{name_of(name), nullptr}});
  return power == Power::going ? power_is_off() : IOStatus::OK();
}

IOStatus PowerCutFileSystem::RenameFile(const std::string& from, const std::string& to,
                                        const rocksdb::IOOptions& options,
                                        rocksdb::IODebugContext* debug) {
  const std::string old_name = normal(from);
  const std::string new_name = normal(to);
  const MutexLock lock(mu_);
  const std::shared_ptr<Bytes> bytes = is_watched(old_name) ? find(old_name) : nullptr;
  if (!bytes) return target()->RenameFile(from, to, options, debug);
  if (folder_of(old_name) != folder_of(new_name)) return not_modelled("rename between folders");
  const Power power = use_power();
  if (power == Power::off) return power_is_off();
  fs::remove(new_name);  // ext4 is slow if a rename replaces a file: it writes the file out
  fs::rename(old_name, new_name);
  change(folder_of(old_name), {{name_of(old_name), nullptr}, {name_of(new_name), bytes}});
  return power == Power::going ? power_is_off() : IOStatus::OK();
}

IOStatus PowerCutFileSystem::LinkFile(const std::string& from, const std::string& to,
                                      const rocksdb::IOOptions& options,
                                      rocksdb::IODebugContext* debug) {
  const std::string old_name = normal(from);
  const std::string new_name = normal(to);
  const MutexLock lock(mu_);
  const std::shared_ptr<Bytes> bytes = is_watched(old_name) ? find(old_name) : nullptr;
  if (!bytes) return target()->LinkFile(from, to, options, debug);
  const Power power = use_power();
  if (power == Power::off) return power_is_off();
  fs::create_hard_link(old_name, new_name);
  change(folder_of(new_name), {{name_of(new_name), bytes}});
  return power == Power::going ? power_is_off() : IOStatus::OK();
}

// ---- the rest ----

IOStatus PowerCutFileSystem::NewSequentialFile(const std::string& path,
                                               const rocksdb::FileOptions& options,
                                               std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                               rocksdb::IODebugContext* debug) {
  if (is_off()) return power_is_off();
  return target()->NewSequentialFile(path, options, file, debug);
}

IOStatus PowerCutFileSystem::NewRandomAccessFile(const std::string& path,
                                                 const rocksdb::FileOptions& options,
                                                 std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                                 rocksdb::IODebugContext* debug) {
  if (is_off() && !goes_on_without_power(path)) return power_is_off();
  return target()->NewRandomAccessFile(path, options, file, debug);
}

IOStatus PowerCutFileSystem::NewLogger(const std::string& /*path*/,
                                       const rocksdb::IOOptions& /*options*/,
                                       std::shared_ptr<rocksdb::Logger>* logger,
                                       rocksdb::IODebugContext* /*debug*/) {
  *logger = std::make_shared<SilentLogger>();
  return IOStatus::OK();
}

IOStatus PowerCutFileSystem::NewRandomRWFile(const std::string& /*path*/,
                                             const rocksdb::FileOptions& /*options*/,
                                             std::unique_ptr<rocksdb::FSRandomRWFile>* /*file*/,
                                             rocksdb::IODebugContext* /*debug*/) {
  return not_modelled("write in place");
}

IOStatus PowerCutFileSystem::ReuseWritableFile(const std::string& /*path*/,
                                               const std::string& /*old_path*/,
                                               const rocksdb::FileOptions& /*options*/,
                                               std::unique_ptr<rocksdb::FSWritableFile>* /*file*/,
                                               rocksdb::IODebugContext* /*debug*/) {
  return not_modelled("reuse a file");
}

IOStatus PowerCutFileSystem::Truncate(const std::string& /*path*/, std::size_t /*size*/,
                                      const rocksdb::IOOptions& /*options*/,
                                      rocksdb::IODebugContext* /*debug*/) {
  return not_modelled("truncate");
}

}  // namespace detent
