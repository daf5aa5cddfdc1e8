// Runs the server on a full disk, on a disk whose syncs fail, and with few file descriptors. It
// must refuse requests with an error, must not crash, must not lose acknowledged tasks, and must
// continue by itself when the problem is over.
//
// strace makes syncs fail. Without strace, these tests are skipped. The full disk is a SmallDisk.
// If the system does not allow it, these tests are skipped. DETENT_SYNC_FAULTS=N runs the test for
// each sync of a thread from the 1st to the N-th (for a soak: 60). The default is every third sync
// up to the 16th.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/testing/test_folder.h"
#include "detent/clock.h"
#include "tests/durability/child_server.h"
#include "tests/durability/small_disk.h"
#include "tests/support/client_of.h"
#include "tests/support/raw_socket.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

/// Schedules tasks, and keeps the ids of acknowledged ones.
class Load {
 public:
  explicit Load(const ChildServer& server, std::chrono::milliseconds timeout = 30s)
      : url_(server.url()), timeout_(timeout), client_(make()) {}

  Result<void> schedule(std::size_t payload_bytes) {
    client::NewTask wanted{.queue = "q", .due = 1h};
    wanted.payload = {client::Payload::Kind::bytes, std::string(payload_bytes, 'x')};
    const auto task = client_.schedule(wanted);
    if (!task) return to_error(task.error());
    acknowledged_.push_back(task->id);
    return ok();
  }
  /// Returns true if a task is accepted within `patience`.
  bool is_accepted_within(std::chrono::milliseconds patience) {
    const SystemClock clock;
    const MonotonicTime end = clock.now() + patience;
    while (!schedule(10)) {
      if (clock.now() >= end) return false;
      pause();
    }
    return true;
  }
  /// Waits 50 ms, so that the server can work.
  static void pause() {
    Doorbell nobody;
    SystemClock clock;
    clock.wait(nobody, clock.now() + 50ms);
  }
  /// Returns the acknowledged tasks that the server does not have.
  std::vector<std::string> lost() {
    client_ = make();
    std::vector<std::string> lost;
    for (const std::uint64_t id : acknowledged_) {
      const auto task = client_.get(id);
      if (!task) lost.push_back(std::to_string(id) + ": " + task.error().message);
    }
    return lost;
  }
  std::size_t acknowledged() const { return acknowledged_.size(); }

 private:
  Client make() const { return test::client_of(url_, timeout_); }

  std::string url_;
  std::chrono::milliseconds timeout_;
  Client client_;
  std::vector<std::uint64_t> acknowledged_;
};

/// Kills the server with kill -9, and starts it without limits and tools. All acknowledged tasks
/// must be there.
void expect_nothing_lost(ChildServer& server, Load& load) {
  server.kill();
  server.options().wrapper.clear();
  server.options().open_files.reset();
  const auto started = server.start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(load.lost(), std::vector<std::string>{});
}

void say(const std::string& what) {
  std::printf("%s\n", what.c_str());
  ::testing::Test::RecordProperty("used", what);
}

TEST(FullDisk, RefusesTasksAndAcceptsThemAgainOnceThereIsSpace) {
  SmallDisk disk(64);
  if (!disk.is_mounted()) GTEST_SKIP() << "no file system may be mounted here";
  say(disk.how());
  std::ofstream(disk / "ballast") << std::string(40 << 20, 'x');
  ChildServer server({.program = DETENT_BINARY,
                      .data = disk / "data",
                      .flags = {"--memory", "64M", "--min-free-disk", "0"}});
  ASSERT_TRUE(server.start());
  Load load(server);

  Result<void> refused = ok();
  while ((refused = load.schedule(60'000))) {
  }
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_NE(refused.error().message.find("No space left"), std::string::npos)
      << refused.error().message;
  // The server opens its store again and again, accepts tasks that fit, and keeps running.
  const SystemClock clock;
  for (const MonotonicTime start = clock.now(); clock.now() - start < 3s;) {
    if (!load.schedule(60'000)) Load::pause();
  }
  ASSERT_TRUE(server.is_running()) << server.log();

  std::filesystem::remove(disk / "ballast");
  EXPECT_TRUE(load.is_accepted_within(60s)) << server.log();
  EXPECT_GT(load.acknowledged(), 50u);
  expect_nothing_lost(server, load);
}

TEST(NearlyFullDisk, RefusesNewTasksWhileWorkersFinishTheirs) {
  SmallDisk disk(64);
  if (!disk.is_mounted()) GTEST_SKIP() << "no file system may be mounted here";
  say(disk.how());
  ChildServer server({.program = DETENT_BINARY,
                      .data = disk / "data",
                      .flags = {"--memory", "64M", "--min-free-disk", "16M"}});
  ASSERT_TRUE(server.start());
  Load load(server);
  Client client = test::client_of(server.url());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(client.schedule({.queue = "work"}));

  std::ofstream(disk / "ballast") << std::string(52 << 20, 'x');
  Result<void> refused = ok();
  while ((refused = load.schedule(10))) Load::pause();
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_NE(refused.error().message.find("--min-free-disk is 16 MiB"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(client.ready());
  const auto leased = client.lease("work", {.max = 2});
  ASSERT_TRUE(leased) << leased.error().message;
  ASSERT_EQ(leased->size(), 2u);
  EXPECT_TRUE(client.complete(std::vector{(*leased)[0].lease}));
  EXPECT_TRUE(client.release(std::vector{(*leased)[1].lease}));
  EXPECT_TRUE(client.cancel((*leased)[1].id));

  std::filesystem::remove(disk / "ballast");
  EXPECT_TRUE(load.is_accepted_within(60s)) << server.log();
  EXPECT_NE(server.log().find("the disk is nearly full; new tasks are refused"), std::string::npos)
      << server.log();
}

TEST(FullDisk, IsSaidAtAStartAndLosesNothing) {
  SmallDisk disk(64);
  if (!disk.is_mounted()) GTEST_SKIP() << "no file system may be mounted here";
  say(disk.how());
  ChildServer server({.program = DETENT_BINARY,
                      .data = disk / "data",
                      .flags = {"--memory", "64M", "--min-free-disk", "0"}});
  ASSERT_TRUE(server.start());
  Load load(server);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(load.schedule(60'000));
  for (const std::uintmax_t kib_left : {0U, 16U, 64U, 256U, 1'024U}) {
    SCOPED_TRACE(std::to_string(kib_left) + " KiB left");
    server.kill();
    std::ofstream(disk / "ballast") << std::string(64 << 20, 'x');  // as much as fits
    const auto ballast = std::filesystem::file_size(disk / "ballast");
    std::filesystem::resize_file(disk / "ballast", ballast - kib_left * 1'024);
    const auto started = server.start();
    if (!started) {
      EXPECT_EQ(server.exit_status(), 1) << started.error().message;
      EXPECT_NE(server.log().find("No space left"), std::string::npos) << server.log();
    }
    std::filesystem::remove(disk / "ballast");
    expect_nothing_lost(server, load);
  }
}

TEST(LargestFileSize, RefusesTasksAndAcceptsThemAgainOnceFilesMayGrow) {
  TestFolder folder;
  ChildServer server({.program = DETENT_BINARY, .data = folder / "data"});
  ASSERT_TRUE(server.start());
  Load load(server);
  ASSERT_TRUE(load.schedule(10));
  server.limit_file_bytes(1 << 20);
  Result<void> refused = ok();
  while ((refused = load.schedule(60'000))) {
  }
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_NE(refused.error().message.find("File too large"), std::string::npos)
      << refused.error().message;
  ASSERT_TRUE(server.is_running()) << server.log();
  server.limit_file_bytes(RLIM_INFINITY);
  EXPECT_TRUE(load.is_accepted_within(60s)) << server.log();
  expect_nothing_lost(server, load);
}

bool has_strace() { return std::system("strace -V > /dev/null 2>&1") == 0; }

/// Returns the strace command that makes syncs of each thread fail. `when` is the number of the
/// sync; "n+" also selects all later ones. These syncs are not done. They return an error, or the
/// result in `answer`. A leak checker cannot run in a traced process, so it is turned off.
std::vector<std::string> failing_syncs(const std::string& when, const std::string& trace,
                                       const std::string& answer = "error=EIO") {
  const std::string inject = "inject=fsync,fdatasync:" + answer + ":when=" + when;
  return {"env", "ASAN_OPTIONS=detect_leaks=0", "strace", "-D",  "-f", "-o", trace,
          "-e",  "trace=fsync,fdatasync",       "-e",     inject};
}

/// Returns the number of failed syncs. strace writes a failure to the file before the server sees
/// it.
int failed_syncs(const std::string& trace) {
  std::ifstream file(trace);
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find("(INJECTED)") != std::string::npos) ++count;
  }
  return count;
}

/// The syncs that fail, one in each run.
struct SyncFaults {
  int last = 16;
  int step = 3;
};
SyncFaults faults_wanted() {
  const char* text = std::getenv("DETENT_SYNC_FAULTS");
  return text != nullptr ? SyncFaults{.last = std::atoi(text), .step = 1} : SyncFaults{};
}

/// Returns true if the server starts. If it does not, checks that its log tells the reason.
bool starts_or_says_why(ChildServer& server) {
  const auto started = server.start();
  if (started) return true;
  EXPECT_EQ(server.exit_status(), 1) << server.log();
  EXPECT_NE(server.log().find("Input/output error"), std::string::npos) << server.log();
  return false;
}

struct Answers {
  int refused = 0;
  int false_ones = 0;  // acknowledged, but not on the disk
};

/// Schedules `tasks` tasks. After each failure, waits until the server accepts tasks again.
Answers schedule_through_failures(Load& load, int tasks, const std::string& trace) {
  Answers answers;
  for (int i = 0; i < tasks; ++i) {
    const int before = failed_syncs(trace);
    const auto scheduled = load.schedule(10);
    if (scheduled) {
      if (failed_syncs(trace) != before) ++answers.false_ones;
      continue;
    }
    ++answers.refused;
    EXPECT_EQ(scheduled.error().code, ErrorCode::unavailable);
    EXPECT_TRUE(load.is_accepted_within(60s));
  }
  return answers;
}

TEST(FailingSync, IsNeverAcknowledgedAndTheServerGoesOn) {
  if (!has_strace()) GTEST_SKIP() << "strace is not installed";
  int failed_starts = 0;
  int refused = 0;
  const SyncFaults faults = faults_wanted();
  for (int n = 1; n <= faults.last; n += faults.step) {
    SCOPED_TRACE("sync " + std::to_string(n));
    TestFolder folder;
    ChildServer server({.program = DETENT_BINARY, .data = folder / "data"});
    ASSERT_TRUE(server.start());
    Load load(server);
    ASSERT_TRUE(load.schedule(10));
    server.kill();
    server.options().wrapper = failing_syncs(std::to_string(n), folder / "trace");
    if (starts_or_says_why(server)) {
      const Answers answers = schedule_through_failures(load, n + 5, folder / "trace");
      EXPECT_EQ(answers.false_ones, 0);
      refused += answers.refused;
      EXPECT_TRUE(server.is_running()) << server.log();
    } else {
      ++failed_starts;
    }
    expect_nothing_lost(server, load);
  }
  std::printf("%d starts and %d writes met a failing sync\n", failed_starts, refused);
  EXPECT_GT(refused, 0);
}

// The control: strace lets failed syncs return success. This simulates a server that ignores failed
// syncs.
TEST(FailingSync, IsFoundToBeAcknowledgedByAServerThatIgnoresIt) {
  if (!has_strace()) GTEST_SKIP() << "strace is not installed";
  TestFolder folder;
  ChildServer server({.program = DETENT_BINARY, .data = folder / "data"});
  server.options().wrapper = failing_syncs("14+", folder / "trace", "retval=0");
  ASSERT_TRUE(server.start()) << server.log();
  Load load(server);
  EXPECT_GT(schedule_through_failures(load, 30, folder / "trace").false_ones, 0);
}

TEST(FailingSync, ThatStaysIsNeverAcknowledged) {
  if (!has_strace()) GTEST_SKIP() << "strace is not installed";
  TestFolder folder;
  ChildServer server({.program = DETENT_BINARY, .data = folder / "data"});
  ASSERT_TRUE(server.start());
  Load load(server);
  ASSERT_TRUE(load.schedule(10));
  server.kill();
  server.options().wrapper = failing_syncs("14+", folder / "trace");
  if (starts_or_says_why(server)) {
    while (load.schedule(10)) {
    }
    const std::size_t acknowledged = load.acknowledged();
    EXPECT_FALSE(load.is_accepted_within(3s));
    EXPECT_EQ(load.acknowledged(), acknowledged);
    EXPECT_TRUE(server.is_running()) << server.log();
  }
  expect_nothing_lost(server, load);
}

TEST(FewDescriptors, AreSaidAtAStart) {
  TestFolder folder;
  ChildServer server({.program = DETENT_BINARY, .data = folder / "data", .open_files = 12});
  const auto started = server.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(server.exit_status(), 1);
  EXPECT_NE(
      started.error().message.find("limit of open files is 12, and the server needs at least 128"),
      std::string::npos)
      << started.error().message;
}

// Opens twice as many silent connections as the server takes. The server closes old connections to
// accept new ones, and the store has its own descriptors.
TEST(FewDescriptors, AreNotTakenFromTheStoreBySilentConnections) {
  TestFolder folder;
  ChildServer server({.program = DETENT_BINARY,
                      .data = folder / "data",
                      .flags = {"--memory", "64M", "--min-free-disk", "0"},
                      .log_level = "info",
                      .open_files = 256,
                      .soft_open_files = 64});
  ASSERT_TRUE(server.start());
  EXPECT_NE(server.log().find("allocated file descriptors limit=256 limit_before=64"),
            std::string::npos)
      << server.log();
  Load load(server);
  std::vector<test::RawSocket> silent;
  for (int i = 0; i < 200; ++i) {
    silent.emplace_back(server.http_port());
    silent.emplace_back(server.beanstalk_port());
    // Enough data that the store creates new logs and tables.
    const Result<void> scheduled = load.schedule(60'000);
    ASSERT_TRUE(scheduled) << i << ": " << scheduled.error().message << server.log();
  }
  EXPECT_LE(server.open_descriptors(), 256u);
  EXPECT_EQ(server.log().find("the store failed"), std::string::npos) << server.log();
  test::RawSocket jobs(server.beanstalk_port());
  ASSERT_TRUE(jobs.send("put 0 0 0 1\r\nx\r\n"));
  EXPECT_EQ(jobs.read(9), "INSERTED ");
  expect_nothing_lost(server, load);
}

TEST(FewDescriptors, UnderLoadCrashNothingAndLoseNothing) {
  TestFolder folder;
  ChildServer server({.program = DETENT_BINARY,
                      .data = folder / "data",
                      .flags = {"--memory", "64M", "--min-free-disk", "0"},
                      .open_files = 128});
  ASSERT_TRUE(server.start());
  Load load(server);
  ASSERT_TRUE(load.schedule(10));
  {
    std::vector<Load> others;  // each keeps a connection; together more than the server takes
    int served = 0;
    for (int i = 0; i < 80; ++i) served += others.emplace_back(server, 20ms).schedule(10) ? 1 : 0;
    EXPECT_LT(served, 64);
    // The store needs descriptors for new logs and tables. They are reserved for it.
    for (int i = 0; i < 200; ++i) {
      const Result<void> scheduled = load.schedule(60'000);
      ASSERT_TRUE(scheduled) << i << ": " << scheduled.error().message << server.log();
    }
  }
  EXPECT_TRUE(load.is_accepted_within(60s)) << server.log();
  expect_nothing_lost(server, load);
}

}  // namespace
}  // namespace detent
