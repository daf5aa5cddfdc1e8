#include "protocol/json/backup_codec.h"

#include <gtest/gtest.h>

#include "base/wall_time.h"

namespace detent::json {
namespace {

TEST(BackupJson, BothBodiesAreReadBack) {
  const WallTime at = parse_rfc3339("2026-11-28T01:02:03.004Z").value();
  const std::string text = render_backup_begun({.folder = "/d/c", .data = "/d", .made_at = at});
  EXPECT_EQ(text, R"({"folder":"/d/c","data":"/d","made_at":"2026-11-28T01:02:03.004Z"})");
  const BackupBegun begun = parse_backup_begun(text).value();
  EXPECT_EQ(begun.folder, "/d/c");
  EXPECT_EQ(begun.data, "/d");
  EXPECT_EQ(begun.made_at, at);
  const BackupEnd end =
      parse_backup_end(render_backup_end({.bytes = 7, .copied_bytes = 3, .made_at = at})).value();
  EXPECT_EQ(end.bytes, 7u);
  EXPECT_EQ(end.copied_bytes, 3u);
  EXPECT_EQ(end.made_at, at);
  EXPECT_TRUE(end.is_complete());
}

TEST(BackupJson, AnEndWithoutBytesIsAFailure) {
  EXPECT_FALSE(parse_backup_end("{}")->is_complete());
  EXPECT_FALSE(parse_backup_end(render_backup_end({}))->is_complete());
  EXPECT_EQ(parse_backup_end(R"({"bytes":-1})").error().field, "bytes");
  EXPECT_EQ(parse_backup_end(R"({"folder":"/etc"})").error().field, "folder");
  EXPECT_EQ(parse_backup_end(R"({"bytes":1})").error().field, "made_at");
}

}  // namespace
}  // namespace detent::json
