#include "store/rocksdb/database/rocksdb_error.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

using rocksdb::Status;

TEST(RocksDbError, SaysTheReasonOfTheSystemOnce) {
  const Status full =
      Status::NoSpace("While appending to file: /data/000012.log", "No space left on device");
  EXPECT_EQ(
      full.ToString(),
      "IO error: No space left on device: While appending to file: /data/000012.log: No space "
      "left on device");
  const Error error = to_error("write store", full);
  EXPECT_EQ(error.code, ErrorCode::resource_exhausted);
  EXPECT_EQ(error.message,
            "write store: IO error: While appending to file: /data/000012.log: No space left on "
            "device");
}

TEST(RocksDbError, KeepsATextWithoutRepetition) {
  EXPECT_EQ(to_error("read", Status::IOError("a: b", "c")).message, "read: IO error: a: b: c");
  EXPECT_EQ(to_error("read", Status::Corruption("bad block")).message,
            "read: Corruption: bad block");
  EXPECT_EQ(to_error("read", Status::Busy()).message, "read: Resource busy: ");
}

}  // namespace
}  // namespace detent
