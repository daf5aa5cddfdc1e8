// An open backup folder: its lock, its RocksDB engine, and the description of each backup. Private
// to backup_folder.cc and restore_backup.cc.
#pragma once

#include <rocksdb/utilities/backup_engine.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/backup.h"
#include "store/rocksdb/database/rocksdb_error.h"

namespace detent {

/// The file of a data folder with the key of webhooks. A backup has its contents.
inline constexpr const char* kWebhookKeyFile = "webhook.key";

/// Returns the message "backup folder 'x' PROBLEM".
Error backup_folder_error(ErrorCode code, const std::string& folder, const std::string& problem);

/// What RocksDB keeps with a backup, as its "metadata".
struct BackupDescription {
  WallTime made_at{};
  std::string store;  // the identity of the database, which copies share
  std::string data;
  std::string program;
  std::string webhook_key;  // the contents of the file; empty: there is no file
};
/// The text has a checksum. Errors: data_loss; invalid_argument if a newer version of Detent wrote
/// it.
std::string to_text(const BackupDescription& described);
Result<BackupDescription> parse_backup_description(std::string_view text);

/// Locks a backup folder. Several processes may read it, or one may write. Thread-compatible.
class LockedBackups {
 public:
  enum class Use : std::uint8_t { read, write };
  /// `write` creates the folder if it is missing. Errors: as add_backup() and list_backups().
  static Result<LockedBackups> open(const std::string& path, Use use);
  ~LockedBackups();
  LockedBackups(LockedBackups&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  LockedBackups& operator=(LockedBackups&&) = delete;

 private:
  explicit LockedBackups(int file) noexcept : file_(file) {}
  int file_;
};

/// Opens the engine. Requires: the folder is locked.
template <class Engine>
Result<std::unique_ptr<Engine>> open_backup_engine(const std::string& folder) {
  rocksdb::BackupEngineOptions options(folder);
  options.max_background_operations = 2;
  Engine* engine = nullptr;
  const rocksdb::Status status = Engine::Open(options, rocksdb::Env::Default(), &engine);
  if (!status.ok()) return to_error("open backup folder '" + folder + "'", status);
  return std::unique_ptr<Engine>(engine);
}

StoredBackup stored_backup(const rocksdb::BackupInfo& info);
/// All complete backups, oldest first.
std::vector<StoredBackup> backups_in(const rocksdb::BackupEngineReadOnlyBase& engine,
                                     BackupCheck check);

}  // namespace detent
