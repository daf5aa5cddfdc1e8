// A file system for RocksDB that can leave a folder as a power cut may leave it. It knows which
// data is on the disk and which is only in the cache of the operating system.
//
// It passes all operations except syncs to the real file system. For a sync, it notes how many
// bytes of a file are durable, and which names. cut() then rewrites the real folder: synced data
// stays, and any part of the rest may be missing. As in POSIX, a sync of a file makes its bytes
// durable, and a sync of its folder makes its name durable. So if a file was synced but its folder
// was not, the file can disappear. POSIX leaves some behaviour open. The model decides it as
// follows:
//  - Of the unsynced bytes of a file, a prefix of any length is kept. With Tear::sectors, sectors
//    in this prefix can also be missing in logs (*.log): they read as zeros. Other files have no
//    such holes, because RocksDB cannot read a manifest with a hole. File systems that write bytes
//    before sizes leave no holes.
//  - If a file was opened so that it grows when space is reserved (fallocate_with_keep_size is
//    false), the reserved space contains zeros until the file is closed. After a cut, any part of
//    these zeros may be left, even if the file was closed. The reason is that neither the new size
//    nor the truncation at the close is durable by itself. A disk with a limit (limit_space())
//    reserves no space.
//  - Changes of names in a folder reach the disk in their order, as on a journaling file system
//    (ext4, XFS, btrfs). The number of changes that reach it is random. RocksDB needs this order,
//    because CURRENT can name a manifest whose own name was not synced before.
//  - After a failed sync, the bytes of this sync can be lost for ever, even if later syncs of the
//    file succeed. Linux behaves this way, as PostgreSQL found out in 2018.
//  - A new folder is durable immediately. SQLite's test VFS and RocksDB's FaultInjectionTestFS use
//    the same idea.
//
// The bytes of each file have a second name, a hard link in the folder `backing`. So a file that
// was deleted or replaced can come back if the change was not synced.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/rng.h"

namespace detent {

/// How unsynced bytes are torn: at any byte, or in whole sectors of 512 bytes.
enum class Tear : std::uint8_t { bytes, sectors };
/// The kind of sync that this disk reports as done without doing it.
enum class Lie : std::uint8_t { none, file_syncs, folder_syncs };

/// One machine from boot to power cut. Thread-safe, except the constructor, the destructor and
/// cut(). Each operation holds a lock during the real I/O, so the notes of this object match the
/// real files.
class PowerCutFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  /// Watches the files under `folder`. Files that exist already are durable. `backing` must be an
  /// empty folder on the same file system, for this object only. Both folders must exist.
  PowerCutFileSystem(std::string folder, std::string backing, Lie lie = Lie::none);
  ~PowerCutFileSystem() override;

  const char* Name() const override { return "PowerCutFileSystem"; }

  /// Turns the power off at the n-th operation from now that changes something or syncs (n starts
  /// at 1). This operation and all later ones fail. It may be done in part. Tables (*.sst) are an
  /// exception: writes to them still succeed, but the file is lost in the cut. Otherwise RocksDB
  /// would run into an assertion.
  void cut_at(std::uint64_t n);
  /// Turns the power off immediately.
  void turn_off();
  bool is_off() const;
  /// Turns the power off, and leaves the folder as it may be found after a power cut. This object
  /// cannot be used after that. Requires: no file of the folder is open.
  void cut(Rng& rng, Tear tear);

  /// From the n-th sync on, syncs of files and folders fail with EIO until heal().
  void fail_syncs_from(std::uint64_t n);
  /// From the n-th append on, appends fail until heal(), and write no bytes.
  void fail_appends_from(std::uint64_t n);
  /// After this many bytes the disk is full (ENOSPC) until heal(). The last append writes the part
  /// that fits.
  void limit_space(std::uint64_t bytes);
  void heal();
  /// Returns true if an operation has failed because of a fault since the last heal().
  bool has_failed() const;

  /// The number of operations so far that change something or sync.
  std::uint64_t operations() const;

  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  /// Opens a file to append at its end.
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* folder,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  /// Requires: both names are in one folder.
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;
  /// Returns a logger that discards RocksDB's messages.
  rocksdb::IOStatus NewLogger(const std::string& path, const rocksdb::IOOptions& options,
                              std::shared_ptr<rocksdb::Logger>* logger,
                              rocksdb::IODebugContext* debug) override;

  // These operations are not modelled, so they fail: files written in place, reused or truncated.
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Truncate(const std::string& path, std::size_t size,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  class WatchedFile;
  class WatchedFolder;
  /// The bytes of a file. The owners are all names of the file, in memory or on disk, and the
  /// objects that have it open. The last owner removes the link in the backing folder.
  struct Bytes;
  using Names = std::map<std::string, std::shared_ptr<Bytes>>;
  struct Folder {
    Names now;
    Names durable;
    std::vector<Names> changes;  // since the last sync, oldest first; null: the name was removed
  };
  enum class Power : std::uint8_t { on, going, off };

  bool is_watched(const std::string& path) const;
  Power use_power() DETENT_REQUIRES(mu_);
  rocksdb::IOStatus append(Bytes& bytes, rocksdb::FSWritableFile& real, const rocksdb::Slice& data);
  rocksdb::IOStatus reserve(Bytes& bytes, std::uint64_t size);
  void end_reserve(const Bytes& bytes);
  rocksdb::IOStatus sync(Bytes& bytes);
  rocksdb::IOStatus sync_folder(const std::string& folder);
  rocksdb::IOStatus begin_sync() DETENT_REQUIRES(mu_);
  std::shared_ptr<Bytes> find(const std::string& path) DETENT_REQUIRES(mu_);
  void change(const std::string& folder, const Names& names) DETENT_REQUIRES(mu_);
  std::shared_ptr<Bytes> new_bytes() DETENT_REQUIRES(mu_);

  const std::string folder_;
  const std::string backing_;
  const Lie lie_;

  mutable Mutex mu_;
  std::map<std::string, Folder> folders_ DETENT_GUARDED_BY(mu_);  // by path
  std::uint64_t files_made_ DETENT_GUARDED_BY(mu_) = 0;
  std::uint64_t operations_ DETENT_GUARDED_BY(mu_) = 0;
  bool has_failed_ DETENT_GUARDED_BY(mu_) = false;
  std::uint64_t until_cut_ DETENT_GUARDED_BY(mu_) = kNever;
  std::uint64_t until_sync_fails_ DETENT_GUARDED_BY(mu_) = kNever;
  std::uint64_t until_append_fails_ DETENT_GUARDED_BY(mu_) = kNever;
  std::uint64_t space_ DETENT_GUARDED_BY(mu_) = kNever;
};

}  // namespace detent
