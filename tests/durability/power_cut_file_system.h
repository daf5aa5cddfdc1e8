// A file system for RocksDB that knows what is on the disk and what only the operating system has,
// and can leave a folder as a power cut may leave it.
//
// It passes everything on to the real file system, but no sync: instead it notes how far each file
// is durable, and which names. cut() then rewrites the real folder: what was synced is kept, of the
// rest anything may be missing. Two things are durable apart from each other, as POSIX has it: the
// bytes of a file (its own sync) and its name (the sync of its folder). So a file that was synced
// under a name that was not is gone. The model, where POSIX leaves it open:
//  - Of bytes that were not synced a beginning of any length is kept. With Tear::sectors, in logs
//    (*.log) sectors of it that never reached the disk read as zeros. Not in other files: RocksDB
//    cannot read a manifest with a hole, and file systems that write bytes before sizes leave none.
//  - A file that was opened to grow when more of it is reserved (fallocate_with_keep_size is false)
//    has zeros there until it is closed. After a cut any part of them may be left, closed or not:
//    neither the new size nor its end is durable by itself. Of a disk with a limit (limit_space())
//    nothing is reserved.
//  - Changes of names in a folder reach the disk in their order, as on a journaling file system
//    (ext4, XFS, btrfs), but how many is open. RocksDB needs the order: CURRENT names a manifest
//    whose own name was not synced before.
//  - After a sync that failed the bytes it was to save stay at risk for ever, whatever later syncs
//    of the file answer (so Linux; found by PostgreSQL in 2018).
// Folders are durable when they are made. The idea of such a file system: SQLite's test VFS,
// RocksDB's FaultInjectionTestFS.
//
// Each file's bytes have a second name, a hard link in the folder `backing`, so that one that was
// deleted or replaced can come back while that was not synced.
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

/// How bytes that were not synced are torn: at any byte, or in whole sectors of 512 bytes.
enum class Tear : std::uint8_t { bytes, sectors };
/// What this disk answers "done" to without doing it.
enum class Lie : std::uint8_t { none, file_syncs, folder_syncs };

/// One machine from boot to power cut. Thread-safe but for the constructor, the destructor and
/// cut(). Each operation is one step under a lock that is held during the real I/O, so that what
/// is noted is what was done.
class PowerCutFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  /// Files under `folder` are watched; what is there is durable. `backing` is another folder on the
  /// same file system, empty, for this object alone. Both exist.
  PowerCutFileSystem(std::string folder, std::string backing, Lie lie = Lie::none);
  ~PowerCutFileSystem() override;

  const char* Name() const override { return "PowerCutFileSystem"; }

  /// The power goes at the n-th operation from now that changes something or syncs (n from 1). That
  /// one and all after it fail; it may have been done in part. But tables (*.sst) are written on,
  /// to nowhere, which spares RocksDB an assertion: nothing leads to them.
  void cut_at(std::uint64_t n);
  /// The power goes now.
  void turn_off();
  bool is_off() const;
  /// Turns the power off, if it is on, and leaves the folder as it may be found afterwards. Of this
  /// object nothing more can be used. Requires: no file of the folder is open.
  void cut(Rng& rng, Tear tear);

  /// The n-th sync from now, of a file or a folder, and all after it fail with EIO until heal().
  void fail_syncs_from(std::uint64_t n);
  /// Likewise for appends, which then write nothing.
  void fail_appends_from(std::uint64_t n);
  /// After so many bytes the disk is full (ENOSPC) until heal(); what fits of the last append is
  /// written.
  void limit_space(std::uint64_t bytes);
  void heal();
  /// Whether a fault has shown since the last heal().
  bool has_failed() const;

  /// Operations so far that change something or sync.
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
  /// Goes on at the end of a file.
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* folder,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  /// Within one folder.
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;
  /// RocksDB's log for people goes nowhere.
  rocksdb::IOStatus NewLogger(const std::string& path, const rocksdb::IOOptions& options,
                              std::shared_ptr<rocksdb::Logger>* logger,
                              rocksdb::IODebugContext* debug) override;

  // Not modelled, so refused: files written in place, used again, or cut short.
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
  /// The bytes of a file. Owned by the names that lead to them, now or on the disk, and by who has
  /// it open; the last owner removes the link in the backing folder.
  struct Bytes;
  using Names = std::map<std::string, std::shared_ptr<Bytes>>;
  struct Folder {
    Names now;
    Names durable;
    std::vector<Names> changes;  // since the last sync, oldest first; null: the name goes
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
