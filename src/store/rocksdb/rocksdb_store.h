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

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/rocksdb/database/rocksdb_options.h"
#include "store/store.h"

namespace detent {

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
