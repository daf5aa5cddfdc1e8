// Tests the program as a process: its error messages and exit codes if it cannot start, a graceful
// stop, recovery after kill -9, and dump and restore.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "base/testing/test_folder.h"
#include "examples/orders/server_process.h"
#include "store/rocksdb/testing/planted_damage.h"
#include "store/rocksdb/testing/sound_folder_rig.h"
#include "tests/support/client_of.h"
#include "tests/support/raw_socket.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

struct Outcome {
  int status = -1;
  std::string said;  // output on both streams
};

/// Runs `detent ARGUMENTS` and waits for its end.
Outcome run(const std::string& arguments) {
  const std::string command = std::string(DETENT_BINARY) + " " + arguments + " 2>&1";
  std::FILE* out = ::popen(command.c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), out)) > 0;) {
    outcome.said.append(part.data(), n);
  }
  const int status = ::pclose(out);
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  return outcome;
}

bool says(const Outcome& outcome, const std::string& words) {
  return outcome.said.find(words) != std::string::npos;
}

std::string read_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Program : public ::testing::Test {
 protected:
  std::string data() const { return folder_ / "data"; }
  Client client() const { return test::client_of(server_.url()); }

  TestFolder folder_;
  orders::ServerProcess server_{DETENT_BINARY, data()};
};

TEST_F(Program, AStopExitsWith0AndKeepsEveryTask) {
  ASSERT_TRUE(server_.start());
  const auto task = client().schedule({.queue = "q", .due = 1h});
  ASSERT_TRUE(task);
  EXPECT_EQ(server_.stop(), 0);
  ASSERT_TRUE(server_.start());
  EXPECT_EQ(client().get(task->id).value().state, client::TaskState::scheduled);
}

TEST_F(Program, AStopAnswersAWaitingWorker) {
  ASSERT_TRUE(server_.start());
  Client waiting = client();
  ASSERT_TRUE(waiting.ready());
  ClientResult<std::vector<client::LeasedTask>> tasks = ClientError{};
  std::thread worker([&] { tasks = waiting.lease("q", {.wait = 60s}); });
  Client looking = client();
  while (test::stats_of(looking).value().waiting_workers == 0) {
  }
  EXPECT_EQ(server_.stop(), 0);
  worker.join();
  ASSERT_TRUE(tasks);
  EXPECT_TRUE(tasks->empty());
}

TEST_F(Program, EventsArriveAsTheyHappenAndEndWithTheServer) {
  ASSERT_TRUE(server_.start());
  const std::string url = server_.url();
  test::RawSocket events(static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
  events.send("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::string told;
  const auto read_to = [&](const std::string& text) {
    while (told.find(text) == std::string::npos) {
      const std::string byte = events.read(1);
      ASSERT_NE(byte, "") << text << " in " << told;
      told += byte;
    }
  };
  read_to("event: stats\ndata: {");
  const auto task = client().schedule({.queue = "q", .due = 50ms});
  ASSERT_TRUE(task);
  const std::string data =
      R"(data: {"id":")" + std::to_string(task->id) + R"(","queue":"q","change":")";
  read_to(data + "scheduled");
  read_to(data + "ready");
  EXPECT_EQ(server_.stop(), 0);
  told += events.read_to_end();
  EXPECT_TRUE(told.ends_with("\r\n0\r\n\r\n")) << told;
}

TEST_F(Program, Kill9LosesNoAcknowledgedTaskAndBringsBackNoCompletedOne) {
  ASSERT_TRUE(server_.start());
  std::vector<std::uint64_t> kept;
  std::uint64_t completed = 0;
  for (int round = 0; round < 5; ++round) {
    Client now = client();
    for (int i = 0; i < 20; ++i) {
      kept.push_back(now.schedule({.queue = "far", .due = 24h}).value().id);
    }
    completed = now.schedule({.queue = "near", .due = 0ms}).value().id;
    const auto leased = now.lease("near", {.wait = 10s}).value();
    ASSERT_EQ(leased.size(), 1u);
    EXPECT_EQ(leased[0].id, completed);
    const std::vector leases{leased[0].lease};
    ASSERT_EQ(now.complete(leases).value().at(0), client::LeaseStatus::done);
    server_.kill();
    ASSERT_TRUE(server_.start());
    EXPECT_EQ(client().get(completed).error().code, ClientError::Code::not_found);
    EXPECT_EQ(client().complete(leases).value().at(0), client::LeaseStatus::conflict);
  }
  Client after = client();
  for (const std::uint64_t id : kept) EXPECT_TRUE(after.get(id)) << id;
  EXPECT_EQ(after.queues().value().at(0).scheduled, kept.size());
}

TEST_F(Program, ADataFolderInUseIsReported) {
  ASSERT_TRUE(server_.start());
  const Outcome second = run("serve --http 127.0.0.1:0 --data " + data());
  EXPECT_EQ(second.status, 1);
  EXPECT_TRUE(says(second, data()) && says(second, "in use")) << second.said;
  EXPECT_TRUE(client().ready());
}

TEST_F(Program, ATakenPortIsReported) {
  ASSERT_TRUE(server_.start());
  const std::string address = server_.url().substr(std::string("http://").size());
  const Outcome second = run("serve --http " + address + " --data " + (folder_ / "other"));
  EXPECT_EQ(second.status, 1);
  EXPECT_TRUE(says(second, address) && says(second, "in use")) << second.said;
}

TEST_F(Program, AFileInsteadOfAFolderIsReported) {
  std::ofstream(data()) << "a file";
  const Outcome outcome = run("serve --http 127.0.0.1:0 --data " + data());
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(says(outcome, data()) && says(outcome, "not a folder")) << outcome.said;
}

// The command line is valid, and the folder can become usable later, for example after a mount. So
// the exit code is 1 (failed) and not 2 (wrong usage).
TEST_F(Program, AFolderThatCannotBeMadeExitsWith1) {
  const Outcome outcome = run("serve --http 127.0.0.1:0 --data " + (folder_ / "no/data"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(says(outcome, "must exist and be writable): No such file")) << outcome.said;
}

TEST_F(Program, ADamagedFolderIsRefusedAndReported) {
  ASSERT_TRUE(server_.start());
  ASSERT_TRUE(client().schedule({.queue = "q", .due = 1h}));
  ASSERT_EQ(server_.stop(), 0);
  for (const auto& file : std::filesystem::directory_iterator(data())) {
    const std::string name = file.path().filename().string();
    if (name.starts_with("MANIFEST")) std::ofstream(file.path()) << "not a manifest";
  }
  const Outcome outcome = run("serve --http 127.0.0.1:0 --data " + data());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(says(outcome, data()) && says(outcome, "damaged")) << outcome.said;
}

TEST_F(Program, AnAddressBeyondLoopbackIsRefused) {
  const Outcome outcome = run("serve --http 0.0.0.0:0 --data " + data());
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(says(outcome, "--auth")) << outcome.said;
  EXPECT_FALSE(std::filesystem::exists(data()));
}

TEST_F(Program, WrongUsageExitsWith2AndAnUnknownTaskWith3) {
  EXPECT_EQ(run("serve --colour red").status, 2);
  EXPECT_EQ(run("frobnicate").status, 2);
  EXPECT_EQ(run("--help").status, 0);
  EXPECT_EQ(run("get 256 --server http://127.0.0.1:9").status, 1);
  ASSERT_TRUE(server_.start());
  EXPECT_EQ(run("get 256 --server " + server_.url()).status, 3);
}

TEST_F(Program, TheCommandsOfTheReadmeWork) {
  ASSERT_TRUE(server_.start());
  const std::string server = " --server " + server_.url();
  EXPECT_EQ(run("put mail '{\"to\":\"ada\"}' --delay 10ms" + server).status, 0);
  const Outcome leased = run("lease mail --wait 20s --json" + server);
  EXPECT_EQ(leased.status, 0);
  EXPECT_TRUE(says(leased, R"("payload":{"to":"ada"})")) << leased.said;
  EXPECT_EQ(run("stats" + server).status, 0);
}

TEST_F(Program, ADumpIsRestoredIntoAnEmptyServerAndDumpedAsTheSameBytes) {
  ASSERT_TRUE(server_.start());
  const std::string server = " --server " + server_.url();
  for (const char* task : {"mail '{\"n\": 1.0}' --delay 1h", "mail '[1,\n2]' --delay 100d",
                           "far --delay 3000d", "now text"}) {
    ASSERT_EQ(run("put " + std::string(task) + server).status, 0);
  }
  ASSERT_EQ(run("lease now --wait 20s" + server).status, 0);
  const Outcome forecast = run("forecast --span 2h --bins 2" + server);
  EXPECT_EQ(forecast.status, 0);
  EXPECT_TRUE(says(forecast, "FROM") && says(forecast, "due later: ")) << forecast.said;

  const std::string file = folder_ / "dump.ndjson";
  EXPECT_EQ(run("dump " + file + server).said, "dumped 4 tasks\n");
  const Outcome in_use = run("check --data " + data());
  EXPECT_EQ(in_use.status, 1);
  EXPECT_TRUE(says(in_use, "in use")) << in_use.said;

  orders::ServerProcess other(DETENT_BINARY, folder_ / "other");
  ASSERT_TRUE(other.start());
  const std::string to_other = " --server " + other.url();
  EXPECT_EQ(run("restore " + file + to_other).said,
            "restored 4 tasks, there before: 0; made 3 queues\n");
  EXPECT_EQ(run("restore - < " + file + to_other).said,
            "restored 0 tasks, there before: 4; made 0 queues\n");
  ASSERT_EQ(run("dump " + file + ".again" + to_other).status, 0);
  EXPECT_EQ(read_file(file + ".again"), read_file(file));

  ASSERT_EQ(other.stop(), 0);
  const Outcome sound = run("check --data " + (folder_ / "other"));
  EXPECT_EQ(sound.status, 0);
  EXPECT_TRUE(says(sound, "records     4 ") && says(sound, "all is well")) << sound.said;
}

TEST_F(Program, ACheckOfAFolderWithoutDataCreatesNone) {
  EXPECT_EQ(run("check --data " + data()).status, 3);
  EXPECT_FALSE(std::filesystem::exists(data()));
  std::filesystem::create_directory(data());
  EXPECT_EQ(run("check --data " + data()).status, 3);
  EXPECT_TRUE(std::filesystem::is_empty(data()));
}

// Two kinds of damage: a changed byte on disk, which RocksDB detects in the block, and a record
// that was damaged before it was written.
TEST_F(Program, ACheckReportsAllDamage) {
  write_sound_folder(data());
  const Outcome sound = run("check --data " + data());
  EXPECT_EQ(sound.status, 0);
  EXPECT_TRUE(says(sound, "records     1800 (due 600, ready 0, dead 600, ended 600)\n") &&
              says(sound, "all is well"))
      << sound.said;
  spoil_table(data(), "due");
  const Place planted = sound_place(2 * kSoundTasks);
  flip_stored_bit(data(), planted, 80);
  const Outcome outcome = run("check --data " + data());
  EXPECT_EQ(outcome.status, 1);
  for (const std::string& words :
       {std::string("wrong: the due lane cannot be read after task "),
        std::string("block checksum mismatch"), std::string("wrong: table "),
        "wrong: task " + to_string(planted.id) + " in the dead lane of queue number 1 at ",
        std::string("wrong: queue mail: waiting tasks: expected 600, found "),
        std::string("wrong: queue mail: dead tasks: expected 600, found 599\n"),
        std::string("wrong: tasks due in the minute from ")}) {
    EXPECT_TRUE(says(outcome, words)) << words << " is not in\n" << outcome.said;
  }
  const Outcome json = run("check --json --data " + data());
  EXPECT_EQ(json.status, 1);
  EXPECT_TRUE(says(json, R"("findings":["task )")) << json.said;
}

}  // namespace
}  // namespace detent
