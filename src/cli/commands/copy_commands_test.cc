// Tests `detent dump` and `detent restore`: files, streams, output and exit codes.
#include "cli/commands/copy_commands.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "cli/output/progress.h"
#include "tests/support/dump_server.h"

namespace detent::cli {
namespace {

class CopyCommandsTest : public testing::Test {
 public:
  CopyCommandsTest() {
    std::string name = testing::TempDir() + "detent-copy-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~CopyCommandsTest() override { std::filesystem::remove_all(folder_); }

 protected:
  ExitCode run(ClientCommand command, OutputFormat format = OutputFormat::people) {
    out_.str("");
    err_.str("");
    const ClientCall call{.server = "", .format = format, .command = std::move(command)};
    return run_command(call, client_, {in_, out_, err_});
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(file(name), std::ios::binary) << text;
  }
  bool says(const std::string& words) const { return err_.str().find(words) != std::string::npos; }

  std::filesystem::path folder_;
  test::Script script_;
  test::DumpServer server_{script_};
  Client client_ = test::scripted_client(script_);
  std::istringstream in_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(CopyCommandsTest, ADumpIsWrittenToAFileAndRestored) {
  for (const std::uint64_t id : {256U, 512U, 768U}) server_.add(id);
  EXPECT_EQ(run(DumpCommand{file("d")}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(err_.str(), "dumped 3 tasks\n");
  EXPECT_FALSE(std::filesystem::exists(file("d.part")));

  EXPECT_EQ(run(DumpCommand{}), ExitCode::done);
  EXPECT_EQ(out_.str(), read(file("d")));

  server_.external = 1;
  EXPECT_EQ(run(DumpCommand{file("d")}), ExitCode::done);
  EXPECT_EQ(err_.str(),
            "dumped 3 tasks\nnot in the dump: 1 task that the external scheduler keeps\n");

  server_.tasks.erase(512);
  EXPECT_EQ(run(RestoreCommand{file("d")}), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(err_.str(), "restored 1 task, there before: 2; made 1 queue\n");
  EXPECT_TRUE(server_.tasks.contains(512));

  in_.str(read(file("d")));
  EXPECT_EQ(run(RestoreCommand{"-"}, OutputFormat::json), ExitCode::done) << err_.str();
  EXPECT_EQ(out_.str(), json::render_restored({.there = 3, .queues = 1}) + "\n");
}

TEST_F(CopyCommandsTest, SchedulesHaveTheirOwnCount) {
  server_.schedules["s"] = {.schedule = {.name = "s",
                                         .rule = IntervalRule{.period = std::chrono::seconds{1}},
                                         .queue = "q"},
                            .progress = {}};
  EXPECT_EQ(run(DumpCommand{file("d")}), ExitCode::done) << err_.str();
  EXPECT_TRUE(err_.str().ends_with(" tasks and 1 schedule\n")) << err_.str();
  EXPECT_EQ(run(RestoreCommand{file("d")}), ExitCode::done) << err_.str();
  EXPECT_TRUE(err_.str().ends_with("restored 0 schedules, there before: 1\n")) << err_.str();
}

TEST_F(CopyCommandsTest, AFailedDumpDoesNotChangeAnEarlierDump) {
  write("d", "earlier");
  for (const std::uint64_t id : {256U, 512U, 768U}) server_.add(id);
  server_.fail_at_call = 2;
  EXPECT_EQ(run(DumpCommand{file("d")}), ExitCode::failed);
  EXPECT_TRUE(says("the line is cut")) << err_.str();
  EXPECT_EQ(read(file("d")), "earlier");
  EXPECT_FALSE(std::filesystem::exists(file("d.part")));
}

TEST_F(CopyCommandsTest, AMissingFolderIsReported) {
  EXPECT_EQ(run(DumpCommand{file("no/d")}), ExitCode::failed);
  EXPECT_TRUE(says("no/d") && says("No such file")) << err_.str();
  EXPECT_EQ(run(RestoreCommand{file("no")}), ExitCode::failed);
  EXPECT_TRUE(says("No such file")) << err_.str();
  std::filesystem::create_directory(file("folder"));
  EXPECT_EQ(run(DumpCommand{file("folder")}), ExitCode::failed);
  EXPECT_TRUE(says("rename")) << err_.str();
}

TEST_F(CopyCommandsTest, DamagedTasksFailADumpThatIsOtherwiseComplete) {
  server_.add(256);
  server_.damaged = 300;
  EXPECT_EQ(run(DumpCommand{file("d")}), ExitCode::failed);
  EXPECT_TRUE(says("the dump does not contain 1 task, because of damaged records on the server\n"))
      << err_.str();
  EXPECT_EQ(run(RestoreCommand{file("d")}), ExitCode::failed);
  EXPECT_TRUE(says("restored 0 tasks, there before: 1") &&
              says("because of damaged records on the server that made it"));
}

TEST_F(CopyCommandsTest, AnEndLineWithoutAllCountsNeedsPartial) {
  for (const std::uint64_t id : {256U, 512U}) server_.add(id);
  ASSERT_EQ(run(DumpCommand{file("d")}), ExitCode::done);
  std::string old = read(file("d"));
  old.erase(old.rfind("{\"end"));
  write("old", old + "{\"end\":true,\"tasks\":2}\n");
  server_.tasks.clear();
  EXPECT_EQ(run(RestoreCommand{file("old")}), ExitCode::failed);
  EXPECT_TRUE(says("the dump is damaged") && says("--partial")) << err_.str();
  EXPECT_TRUE(server_.tasks.empty());
  EXPECT_EQ(run(RestoreCommand{.file = file("old"), .partial = true}), ExitCode::done);
  EXPECT_TRUE(says("missing lines cannot be detected")) << err_.str();
  EXPECT_EQ(server_.tasks.size(), 2U);
  in_.str(read(file("old")));
  EXPECT_EQ(run(RestoreCommand{"-"}), ExitCode::failed);
}

TEST_F(CopyCommandsTest, ATruncatedDumpNeedsPartial) {
  for (const std::uint64_t id : {256U, 512U}) server_.add(id);
  ASSERT_EQ(run(DumpCommand{file("d")}), ExitCode::done);
  const std::string whole = read(file("d"));
  const std::string cut = whole.substr(0, whole.rfind("{\"end"));
  write("cut", cut);
  server_.tasks.clear();
  EXPECT_EQ(run(RestoreCommand{file("cut")}), ExitCode::failed);
  EXPECT_TRUE(says("is truncated") && says("--partial")) << err_.str();
  EXPECT_TRUE(server_.tasks.empty());
  EXPECT_EQ(run(RestoreCommand{.file = file("cut"), .partial = true}), ExitCode::done);
  EXPECT_EQ(server_.tasks.size(), 2U);

  in_.str(cut);
  EXPECT_EQ(run(RestoreCommand{"-"}), ExitCode::failed);
  EXPECT_TRUE(says("no end line")) << err_.str();

  std::string other_count = whole;
  other_count.erase(0, other_count.find('\n') + 1);  // the line with the settings of the queue
  write("other", other_count);
  EXPECT_EQ(run(RestoreCommand{file("other")}), ExitCode::failed);
  EXPECT_TRUE(says("the dump is incomplete")) << err_.str();
}

TEST_F(CopyCommandsTest, AFileThatIsNotADumpIsNotReportedAsTruncated) {
  const auto expect_said = [this](const std::string& bytes, const std::string& words) {
    write("d", bytes);
    for (const bool is_stream : {false, true}) {
      in_.clear();
      in_.str(bytes);
      EXPECT_EQ(run(RestoreCommand{is_stream ? "-" : file("d")}), ExitCode::failed);
      EXPECT_TRUE(says(words)) << err_.str();
      EXPECT_FALSE(says("truncated")) << err_.str();
    }
  };
  expect_said("no JSON\nat all\n", " is not a dump: ");
  expect_said(std::string("\x80\0\xFF\n\xFE", 5), " is not a dump: ");
  write("seed.py", "import detent\n");
  EXPECT_EQ(run(RestoreCommand{file("seed.py")}), ExitCode::failed);
  EXPECT_TRUE(says("'" + file("seed.py") + "' is not a dump: ")) << err_.str();
  const std::string rest("\0\n\0", 3);
  expect_said("\x1F\x8B" + rest,
              " is compressed; restore it with: gzip -dc FILE | detent restore -");
  expect_said("\x28\xB5\x2F\xFD" + rest, "zstd -dc FILE | detent restore -");
  expect_said("\xFD\x37zXZ" + rest, "xz -dc FILE | detent restore -");
  expect_said("BZh9" + rest, "bzip2 -dc FILE | detent restore -");
}

TEST_F(CopyCommandsTest, ARefusedLineFailsTheCommandButTheOthersAreRestored) {
  server_.add(256);
  ASSERT_EQ(run(DumpCommand{file("d")}), ExitCode::done);
  write("d", "{\"colour\":1}\n" + read(file("d")));
  server_.tasks.clear();
  EXPECT_EQ(run(RestoreCommand{file("d")}), ExitCode::failed);
  EXPECT_TRUE(says("line 1: ") && says("restored 1 task,")) << err_.str();
}

TEST_F(CopyCommandsTest, AStoppedRestoreReportsItsLastLine) {
  server_.add(256);
  ASSERT_EQ(run(DumpCommand{file("d")}), ExitCode::done);
  server_.fail_at_call = server_.calls + 1;
  EXPECT_EQ(run(RestoreCommand{file("d")}), ExitCode::failed);
  EXPECT_TRUE(says("stopped after line 0") && says("the line is cut")) << err_.str();
}

TEST(Progress, IsALineThatChangesOnATerminalAndAFewLinesElsewhere) {
  std::ostringstream err;
  {
    Progress progress(err, Progress::Shown::line_that_changes, "done:");
    progress.at(1);
    progress.at(2'000);
    progress.end();
  }
  EXPECT_EQ(err.str(), "\rdone: 1\rdone: 2000\r\x1B[K");
  err.str("");
  {
    Progress progress(err, Progress::Shown::lines, "done:");
    for (std::uint64_t count = 0; count <= 250'000; count += 50'000) progress.at(count);
  }
  EXPECT_EQ(err.str(), "done: 100000\ndone: 200000\n");
}

}  // namespace
}  // namespace detent::cli
