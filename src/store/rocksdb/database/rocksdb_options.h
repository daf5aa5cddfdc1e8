// The options of the store on disk.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "store/checkpoints.h"
#include "store/cut_tail.h"
#include "store/data_folder_is.h"

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
  /// Other threads make checkpoints of the open store through this object. Null: none.
  std::shared_ptr<Checkpoints> checkpoints = {};
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

}  // namespace detent
