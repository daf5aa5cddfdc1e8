// The store on disk: a RocksDB database in a folder. Only one process can use the folder at a time.
//
// Each write() is one RocksDB batch with at most one sync, so a crash never leaves a part of a
// batch. A new task is written once, under its id, in the accepted column family. Later a *settle*
// moves many accepted tasks to their lanes together (settle.h). This is cheaper than sorting each
// task when it comes.
//
// The settled mark, a task id on disk, tells where a task is. If the id of a task is above the
// mark, the task is in the accepted family, in any lane. All other tasks are in their lanes, with
// an index by id. docs/internals/storage-format.md defines the format. Only this folder includes
// RocksDB's headers.
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
  /// Whether a missing folder is created, with mode 0700 in an existing parent folder. With
  /// DataFolderIs::there, open() fails with `unavailable` if the folder is missing or has no store,
  /// and creates no file.
  DataFolderIs folder = DataFolderIs::made_if_missing;
  /// Tells open() which folder to accept, so that a process never continues with another folder.
  /// The first successful open() fills it. Later calls with the same mark fail with `unavailable`
  /// if another folder or store is at `path`. Null: any folder.
  std::shared_ptr<DataFolderMark> mark = {};
  /// The memory for RocksDB's block cache: data blocks, indexes and filters. In bytes.
  std::size_t cache_bytes = std::size_t{128} << 20;
  /// The memory for one write buffer of the accepted family, in bytes. RocksDB keeps up to two of
  /// them. The buffers of the other families are smaller.
  std::size_t write_buffer_bytes = std::size_t{32} << 20;
  /// A settle starts when there are this many accepted tasks, or when their records have this many
  /// bytes. Each accepted task takes 32 bytes of memory. A running settle keeps up to
  /// `settle_bytes` of records in memory. A start reads all accepted tasks.
  std::size_t settle_tasks = 500'000;
  std::size_t settle_bytes = std::size_t{64} << 20;
  /// The largest number of file descriptors for tables, at least 20. The logs need about 20 more.
  std::size_t open_files = 512;
  /// Settles inside write() instead of on a thread of its own. For simulations.
  bool settle_inline = false;
  /// open() calls this for each log whose end is incomplete after a power loss, before it cuts that
  /// end off.
  OnCutTail on_cut_tail = {};
};

/// Opens the store. Everything else goes through the Store interface.
class RocksDbStore {
 public:
  /// Errors: unavailable if another process has the folder open, or this user may not use it;
  /// invalid_argument if the path is not a folder, or a newer version of Detent wrote it; data_loss
  /// if the data is damaged. The message names the folder and is meant for the operator.
  static Result<std::unique_ptr<Store>> open(const RocksDbStoreOptions& options);
  /// Returns true if the folder contains a store. Errors: data_loss if it contains only a part of
  /// one.
  static Result<bool> is_in(const std::string& folder);
  /// Returns the files in a folder that do not belong there before a store is created. The result
  /// is empty if the folder already has a store. Allowed are: hidden files, files of an interrupted
  /// first start, webhook.key and lost+found.
  static std::vector<std::string> files_of_others(const std::string& folder);
};

}  // namespace detent
