// The store on disk, in RocksDB: one folder, one process, no daemon.
//
// A new task is appended under its id, and nothing else: one write() is one RocksDB batch with one
// sync, so a crash leaves all of it or nothing. Its place in the order of its lane is made behind,
// in bulk (settle.h). A durable mark tells the two apart: records with ids above it are in the
// accepted family, whatever their lane; all others in their lanes, with an index by id. RocksDB's
// headers stay inside this folder. docs/internals/storage-format.md defines what is on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/cut_tail.h"
#include "store/data_folder_is.h"
#include "store/store.h"

namespace detent {

struct RocksDbStoreOptions {
  /// The data folder.
  std::string path;
  /// It is made with mode 0700, and its parent must exist. One that should be there and is not, or
  /// holds no store, is `unavailable`, and nothing is made in it.
  DataFolderIs folder = DataFolderIs::made_if_missing;
  /// Written by the first open(), with this mark, that succeeds. Each later one refuses another
  /// folder or store as `unavailable`. Null: any folder will do.
  std::shared_ptr<DataFolderMark> mark = {};
  /// Memory for blocks read, their indexes and filters.
  std::size_t cache_bytes = std::size_t{128} << 20;
  /// Memory for one buffer of accepted records not yet in a table; there are two, and smaller ones
  /// for all else.
  std::size_t write_buffer_bytes = std::size_t{32} << 20;
  /// Accepted tasks are settled when there are so many, or so many bytes of them: the first costs
  /// 32 bytes of memory each, the second so much memory while a settle runs; both are read at a
  /// start.
  std::size_t settle_tasks = 500'000;
  std::size_t settle_bytes = std::size_t{64} << 20;
  /// File descriptors for its tables, at least 20. Its logs need some 20 more.
  std::size_t open_files = 512;
  /// Settles inside write(), not on a thread: for simulation.
  bool settle_inline = false;
  /// Called in open(), for each log whose end power loss left incomplete.
  OnCutTail on_cut_tail = {};
};

/// Makes the store; all else of it is behind the interface.
class RocksDbStore {
 public:
  /// Errors: unavailable when another process has the folder open, or this user may not use it;
  /// invalid_argument when it is no folder, or a newer version wrote it; data_loss when it is
  /// damaged. The message names the folder and is meant for the operator.
  static Result<std::unique_ptr<Store>> open(const RocksDbStoreOptions& options);
  /// Whether there is a store in a folder. Errors: data_loss when there are parts of one only.
  static Result<bool> is_in(const std::string& folder);
  /// What else is in a folder without a store, in which one would be made; nothing that may be
  /// there before: hidden files, those of a start that was interrupted, webhook.key, lost+found.
  static std::vector<std::string> files_of_others(const std::string& folder);
};

}  // namespace detent
