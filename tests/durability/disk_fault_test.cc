// The server on a disk that is full, on one whose syncs fail, and short of file descriptors: it
// answers that it cannot, does not crash, loses nothing it acknowledged, and goes on by itself once
// the trouble is over.
//
// Failing syncs are made by strace (skipped where it is missing), the full disk is a small one
// (small_disk.h; skipped where the system forbids it). DETENT_SYNC_FAULTS sets up to which sync of
// each thread one fails (for a soak: 60), from the first on; without it every third does up to 16.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "client/api_client.h"
#include "detent/clock.h"
#include "tests/durability/child_server.h"
#include "tests/durability/small_disk.h"
#include "tests/support/raw_socket.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

/// Schedules tasks, and knows which were acknowledged.
class Load {
 public:
  explicit Load(const ChildServer& server, std::chrono::milliseconds timeout = 30s)
      : url_(server.url()), timeout_(timeout), client_(make()) {}

  Result<void> schedule(std::size_t payload_bytes) {
    ScheduleRequest request{.queue = "q", .due = 1h};
    request.payload = {.kind = Payload::Kind::bytes, .data = std::string(payload_bytes, 'x')};
    const auto task = client_.schedule(request);
    if (!task) return task.error();
    acknowledged_.push_back(task->id);
    return ok();
  }
  /// Whether a task is accepted again within so long.
  bool is_accepted_within(std::chrono::milliseconds patience) {
    const SystemClock clock;
    const MonotonicTime end = clock.now() + patience;
    while (!schedule(10)) {
      if (clock.now() >= end) return false;
      pause();
    }
    return true;
  }
  /// Lets the server have some time.
  static void pause() {
    Doorbell nobody;
    SystemClock clock;
    clock.wait(nobody, clock.now() + 50ms);
  }
  /// Tasks that were acknowledged and are not there.
  std::vector<std::string> lost() {
    client_ = make();
    std::vector<std::string> lost;
    for (const TaskId id : acknowledged_) {
      const auto task = client_.get(id);
      if (!task) lost.push_back(to_string(id) + ": " + task.error().message);
    }
    return lost;
  }
  std::size_t acknowledged() const { return acknowledged_.size(); }

 private:
  ApiClient make() const { return ApiClient::create(url_, timeout_).value(); }

  std::string url_;
  std::chrono::milliseconds timeout_;
  ApiClient client_;
  std::vector<TaskId> acknowledged_;
};

/// kill -9, and a start without limits and tools: everything acknowledged must be there.
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
  ChildServer server(
      {.program = DETENT_BINARY, .data = disk / "data", .flags = {"--memory", "64M"}});
  ASSERT_TRUE(server.start());
  Load load(server);

  Result<void> refused = ok();
  while ((refused = load.schedule(60'000))) {
  }
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_NE(refused.error().message.find("No space left"), std::string::npos)
      << refused.error().message;
  // It opens its store again and again, takes what fits, and stays.
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

TEST(FullDisk, IsSaidAtAStartAndLosesNothing) {
  SmallDisk disk(64);
  if (!disk.is_mounted()) GTEST_SKIP() << "no file system may be mounted here";
  say(disk.how());
  ChildServer server(
      {.program = DETENT_BINARY, .data = disk / "data", .flags = {"--memory", "64M"}});
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

/// Has the n-th sync of each thread not be made, or that and all after it, and answers an error, or
/// what `answer` says. (Leaks cannot be looked for in a process that is traced.)
std::vector<std::string> failing_syncs(const std::string& when, const std::string& trace,
                                       const std::string& answer = "error=EIO") {
  const std::string inject = "inject=fsync,fdatasync:" + answer + ":when=" + when;
  return {"env", "ASAN_OPTIONS=detect_leaks=0", "strace", "-D",  "-f", "-o", trace,
          "-e",  "trace=fsync,fdatasync",       "-e",     inject};
}

/// How many have failed; strace writes it down before the server learns of it.
int failed_syncs(const std::string& trace) {
  std::ifstream file(trace);
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find("(INJECTED)") != std::string::npos) ++count;
  }
  return count;
}

/// Which syncs fail, in one run after another.
struct SyncFaults {
  int last = 16;
  int step = 3;
};
SyncFaults faults_wanted() {
  const char* text = std::getenv("DETENT_SYNC_FAULTS");
  return text != nullptr ? SyncFaults{.last = std::atoi(text), .step = 1} : SyncFaults{};
}

/// Returns: whether the server could start; that it said why when it could not is checked.
bool starts_or_says_why(ChildServer& server) {
  const auto started = server.start();
  if (started) return true;
  EXPECT_EQ(server.exit_status(), 1) << server.log();
  EXPECT_NE(server.log().find("Input/output error"), std::string::npos) << server.log();
  return false;
}

struct Answers {
  int refused = 0;
  int false_ones = 0;  // acknowledged, and not on the disk
};

/// Schedules so many tasks, waiting out each failure.
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

// The control: to a server that does not look whether a sync has failed, one that has looks like
// one that is good.
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
  EXPECT_NE(started.error().message.find("may have 12 open files, and needs at least 128"),
            std::string::npos)
      << started.error().message;
}

// Silent connections, twice as many as the server takes: it closes them for others, and the store
// has descriptors of its own.
TEST(FewDescriptors, AreNotTakenFromTheStoreBySilentConnections) {
  TestFolder folder;
  ChildServer server({.program = DETENT_BINARY,
                      .data = folder / "data",
                      .flags = {"--memory", "64M"},
                      .log_level = "info",
                      .open_files = 256,
                      .soft_open_files = 64});
  ASSERT_TRUE(server.start());
  EXPECT_NE(server.log().find("file descriptors are shared out limit=256 limit_before=64"),
            std::string::npos)
      << server.log();
  Load load(server);
  std::vector<test::RawSocket> silent;
  for (int i = 0; i < 200; ++i) {
    silent.emplace_back(server.http_port());
    silent.emplace_back(server.beanstalk_port());
    // Often enough that the store begins new logs and tables.
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
                      .flags = {"--memory", "64M"},
                      .open_files = 128});
  ASSERT_TRUE(server.start());
  Load load(server);
  ASSERT_TRUE(load.schedule(10));
  {
    std::vector<Load> others;  // each keeps a connection; more than the server takes
    int served = 0;
    for (int i = 0; i < 80; ++i) served += others.emplace_back(server, 20ms).schedule(10) ? 1 : 0;
    EXPECT_LT(served, 64);
    // New logs and tables of the store need descriptors, too, and have their own.
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
