// RocksDB's environment on a disk whose power is cut.
//
// RocksDB sleeps a second after an error in the background, and after each power cut there is one;
// here it does not.
#pragma once

#include <rocksdb/env.h>

#include <memory>

#include "tests/durability/power_cut_file_system.h"

namespace detent {

/// `disk` must outlive it.
std::unique_ptr<rocksdb::Env> make_env(PowerCutFileSystem& disk);

}  // namespace detent
