// Brings a data folder of format 1 to the present one (docs/internals/storage-format.md, "How
// it changes").
#pragma once

#include "base/result.h"
#include "store/rocksdb/open_db.h"

namespace detent {

/// Due entries and ids stay as they are; dead tasks, which lay at the end of time in the due order,
/// move to the dead lanes; counts by queue become queue records, with numbers in the order of
/// names; due counts are made. Cost: one reading of all records. May be killed at any point and run
/// again: the version is written with the last of it.
Result<void> upgrade_from_format_1(OpenDb& db);

}  // namespace detent
