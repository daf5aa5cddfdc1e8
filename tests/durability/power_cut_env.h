// RocksDB's environment on a disk whose power is cut.
//
// RocksDB sleeps for a second after an error in the background, and each power cut causes one. This
// environment does not sleep.
#pragma once

#include <rocksdb/env.h>

#include <memory>

#include "tests/durability/power_cut_file_system.h"

namespace detent {

/// `disk` must outlive the environment.
std::unique_ptr<rocksdb::Env> make_env(PowerCutFileSystem& disk);

}  // namespace detent
