#include "server/access/audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "base/log/log.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

/// Catches the log for one test.
class LogCapture {
 public:
  LogCapture() { configure_log({.out = &out_}); }
  ~LogCapture() { configure_log({}); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  std::string text() const { return out_.str(); }

 private:
  std::ostringstream out_;
};

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Audit, LogsCallerAddressActAndStatus) {
  const LogCapture log;
  net::HttpRequest request{.method = "POST",
                           .target = "/v1/queues/mail/purge?secret=1",
                           .headers = {{"authorization", "Bearer dt_hidden"}},
                           .body = "hidden",
                           .peer = "10.1.2.3"};
  const ManualClock clock;
  AuditLog(clock).note(audited_act("ops", request), 200);
  const std::string line = log.text();
  for (const char* part :
       {"audit", "who=ops", "address=10.1.2.3", "POST /v1/queues/mail/purge", "status=200"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
  }
  EXPECT_EQ(line.find("hidden"), std::string::npos) << line;
  EXPECT_EQ(line.find("secret"), std::string::npos) << line;
}

TEST(Audit, ARestoreOfManyRequestsIsOneLine) {
  const LogCapture log;
  ManualClock clock;
  AuditLog audit(clock);
  const AuditedAct restore{.who = "ops", .address = "10.1.2.3", .act = "POST /v1/restore"};
  for (int i = 0; i < 284; ++i) {
    audit.note(restore, 200);
    clock.advance(10s);
  }
  EXPECT_EQ(lines_of(log.text()), 1U) << log.text();
  audit.note(restore, 503);
  EXPECT_EQ(lines_of(log.text()), 2U) << "another status";
  audit.note({.who = "ada", .address = "10.1.2.3", .act = "POST /v1/restore"}, 503);
  EXPECT_EQ(lines_of(log.text()), 3U) << "another token";
  clock.advance(61s);
  audit.note({.who = "ada", .address = "10.1.2.3", .act = "POST /v1/restore"}, 503);
  EXPECT_EQ(lines_of(log.text()), 4U) << "a restore after a pause";
}

TEST(Audit, ADumpOfManyPagesIsOneLineAndTheNextDumpIsAnother) {
  const LogCapture log;
  ManualClock clock;
  AuditLog audit(clock);
  const auto dump = [&audit](const std::string& who) {
    for (const char* query :
         {"", "?after=256", "?after=512&limit=1000", "?after=512&after_schedule=report"}) {
      const net::HttpRequest page{.method = "GET",
                                  .target = std::string("/v1/dump") + query,
                                  .headers = {},
                                  .body = "",
                                  .peer = "10.1.2.3"};
      audit.note(audited_act(who, page), 200);
    }
  };
  dump("ops");
  EXPECT_EQ(lines_of(log.text()), 1U) << log.text();
  dump("ops");
  EXPECT_EQ(lines_of(log.text()), 2U) << "another dump, within the same minute";
}

TEST(Audit, TwoDumpsAtTheSameTimeAreTwoLines) {
  const LogCapture log;
  ManualClock clock;
  AuditLog audit(clock);
  AuditedAct page{.address = "10.1.2.3", .act = "GET /v1/dump"};
  for (int i = 0; i < 10; ++i) {
    page.is_further = i > 0;
    for (const char* who : {"ops", "ada"}) {
      page.who = who;
      audit.note(page, 200);
    }
  }
  EXPECT_EQ(lines_of(log.text()), 2U) << log.text();
}

TEST(Audit, AFurtherPageOfAnUnknownDumpIsALine) {
  const LogCapture log;
  ManualClock clock;
  AuditLog audit(clock);
  const AuditedAct page{.who = "ops", .address = "::1", .act = "GET /v1/dump", .is_further = true};
  audit.note(page, 200);
  EXPECT_EQ(lines_of(log.text()), 1U) << log.text();
  for (std::size_t i = 0; i <= AuditLog::kMostActs; ++i) {
    audit.note({.who = std::to_string(i), .address = "::1", .act = "GET /v1/dump"}, 200);
  }
  audit.note(page, 200);
  EXPECT_EQ(lines_of(log.text()), AuditLog::kMostActs + 3U) << "it is no longer known";
}

TEST(Audit, ABackupIsOneLineAndAnEndWithoutABeginIsALine) {
  const LogCapture log;
  ManualClock clock;
  AuditLog audit(clock);
  const AuditedAct begin{.who = "ops", .address = "::1", .act = "POST /v1/backup"};
  const AuditedAct end{.who = "ops", .address = "::1", .act = "POST /v1/backup/end"};
  audit.note(begin, 201);
  clock.advance(1h);
  audit.note(end, 200);
  EXPECT_EQ(lines_of(log.text()), 1U) << log.text();
  audit.note(end, 200);
  EXPECT_EQ(lines_of(log.text()), 2U) << "the backup had ended before";
  audit.note(begin, 409);
  audit.note(end, 200);
  EXPECT_EQ(lines_of(log.text()), 4U) << "the begin was refused";
  audit.note(begin, 201);
  audit.note({.who = "ada", .address = "::1", .act = "POST /v1/backup/end"}, 200);
  EXPECT_EQ(lines_of(log.text()), 6U) << "another token";
  audit.note(end, 400);
  EXPECT_EQ(lines_of(log.text()), 7U) << "another status";
  audit.note(end, 200);
  EXPECT_EQ(lines_of(log.text()), 7U) << log.text();
}

TEST(Audit, EachOtherActIsALine) {
  const LogCapture log;
  const ManualClock clock;
  AuditLog audit(clock);
  for (int i = 0; i < 3; ++i) audit.note({.who = "ops", .act = "POST /v1/queues/q/purge"}, 200);
  EXPECT_EQ(lines_of(log.text()), 3U) << log.text();
}

TEST(RefusalLog, WritesALineASecondAndCountsTheOthers) {
  const LogCapture log;
  ManualClock clock;
  RefusalLog refusals(clock);
  for (int i = 0; i < 5; ++i) refusals.note("10.0.0.1");
  EXPECT_EQ(lines_of(log.text()), 1U) << log.text();
  clock.advance(1s);
  refusals.note("10.0.0.2");
  EXPECT_EQ(lines_of(log.text()), 2U) << log.text();
  EXPECT_NE(log.text().find("address=10.0.0.2 others_before=4"), std::string::npos) << log.text();
  clock.advance(999ms);
  refusals.note("10.0.0.2");
  EXPECT_EQ(lines_of(log.text()), 2U);
}

}  // namespace
}  // namespace detent::server
