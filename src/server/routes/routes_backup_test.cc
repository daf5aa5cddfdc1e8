// Tests of the routes of backups. tests/e2e/backup_test.py tests whole backups.
#include <filesystem>
#include <string>

#include "base/wall_time.h"
#include "protocol/json/backup_codec.h"
#include "server/testing/backups_rig.h"
#include "server/testing/routes_fixture.h"

namespace detent::server {
namespace {

TEST_F(RoutesTest, ABackupIsBegunAndEndedAndShowsInTheMetrics) {
  BackupsRig rig(clock_);
  listen_with({.backups = &rig.backups});
  EXPECT_EQ(send("GET", "/metrics").body.find("detent_backup"), std::string::npos);
  const net::HttpResponse begun = post("/v1/backup", "");
  ASSERT_EQ(begun.status, 201) << begun.body;
  const json::BackupBegun backup = json::parse_backup_begun(begun.body).value();
  EXPECT_TRUE(std::filesystem::exists(backup.folder));
  EXPECT_EQ(backup.data, rig.data.path());
  expect_problem(post("/v1/backup", R"({"folder":"/etc"})"), 400, {"folder"});
  expect_problem(post("/v1/backup", ""), 409, {"another backup has begun"});
  expect_problem(post("/v1/backup/end", R"({"bytes":"x"})"), 400, {"bytes"});
  expect_problem(post("/v1/backup/end", R"({"bytes":7,"made_at":"2999-01-01T00:00:00Z"})"), 400,
                 {"made_at", "in the future"});
  EXPECT_TRUE(std::filesystem::exists(backup.folder));
  const net::HttpResponse ended =
      post("/v1/backup/end",
           json::render_backup_end({.bytes = 70, .copied_bytes = 7, .made_at = backup.made_at}));
  EXPECT_EQ(ended.status, 200) << ended.body;
  EXPECT_FALSE(std::filesystem::exists(backup.folder));
  const std::string metrics = send("GET", "/metrics").body;
  for (const char* line :
       {"\ndetent_backup_last_success_timestamp_seconds 1577836800\n",
        "\ndetent_backup_last_bytes 70\n", "\ndetent_backup_last_copied_bytes 7\n"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << " in " << metrics;
  }
  http_->stop(0ms);
}

TEST_F(RoutesTest, WithoutADataFolderABackupIsRefused) {
  expect_problem(post("/v1/backup", ""), 409, {"PostgreSQL", "pg_basebackup"});
  expect_problem(post("/v1/backup/end", ""), 409, {"PostgreSQL"});
}

}  // namespace
}  // namespace detent::server
