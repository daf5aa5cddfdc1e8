// Tests the server as a service of systemd: its notifications, and the reload of its files. The
// test plays the part of systemd.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>  // tidy-ok(third-party): shows whether a sanitizer replaces malloc
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "base/testing/test_folder.h"
#include "server/access/access_token.h"
#include "server/testing/test_notify_socket.h"
#include "tests/durability/child_server.h"
#include "tests/support/client_of.h"
#include "tests/support/raw_socket.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

class Service : public ::testing::Test {
 protected:
  void write_settings(const std::string& text) const { std::ofstream(settings_) << text; }
  bool has_logged(const std::string& words) const {
    return server_.log().find(words) != std::string::npos;
  }

  server::NotifySocket socket_;
  TestFolder folder_;
  const std::string settings_ = folder_ / "detent.toml";
  ChildServer server_{{.program = DETENT_BINARY,
                       .data = folder_ / "data",
                       .flags = {"--config", settings_},
                       .log_level = "",
                       .wrapper = {"env", "NOTIFY_SOCKET=" + socket_.name()}}};
};

TEST_F(Service, TellsSystemdThatItIsReadyReloadsAndStops) {
  write_settings("");
  ASSERT_TRUE(server_.start());
  EXPECT_EQ(socket_.next(), "READY=1");
  ASSERT_TRUE(test::client_of(server_.url()).ready()) << "as it has said";
  const MonotonicTime before = SystemClock().now();
  server_.signal(SIGHUP);
  const std::string reloading = socket_.next().value();
  const std::string prefix = "RELOADING=1\nMONOTONIC_USEC=";
  ASSERT_EQ(reloading.rfind(prefix, 0), 0U) << reloading;
  const std::chrono::microseconds at{std::stoll(reloading.substr(prefix.size()))};
  EXPECT_GE(at + 1us, before.time_since_epoch());
  EXPECT_LE(at, SystemClock().now().time_since_epoch());
  EXPECT_EQ(socket_.next(), "READY=1");
  EXPECT_EQ(server_.stop(), 0);
  EXPECT_EQ(socket_.next(), "STOPPING=1");
  EXPECT_TRUE(socket_.is_silent());
}

TEST_F(Service, AReloadReadsTheFileAndABadFileChangesNothing) {
  write_settings("log-level = \"error\"\nmemory = \"64M\"\n");
  ASSERT_TRUE(server_.start());
  EXPECT_EQ(socket_.next(), "READY=1");
  const auto reload = [this] {
    server_.signal(SIGHUP);
    EXPECT_TRUE(socket_.next());
    EXPECT_EQ(socket_.next(), "READY=1");
  };
  reload();
  EXPECT_EQ(server_.log(), "") << "only errors";
  write_settings("log-level = \"loud\"\n");
  reload();
  EXPECT_TRUE(has_logged("error the settings cannot be reloaded; the old settings stay in force"));
  EXPECT_TRUE(has_logged(":1: log-level: must be debug")) << server_.log();
  EXPECT_FALSE(has_logged("the reload is complete"));
  write_settings("log-level = \"info\"\nmemory = \"65M\"\n");
  reload();
  EXPECT_TRUE(
      has_logged("warning a changed setting takes effect at the next start "
                 "setting=memory from=" +
                 settings_ + ":2"))
      << server_.log();
  EXPECT_TRUE(has_logged("info the reload is complete"));
  EXPECT_TRUE(test::client_of(server_.url()).ready());
  EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Service, LogsAnUnknownVariable) {
  write_settings("");
  server_.options().wrapper.emplace_back("DETENT_MEMROY=1G");
  ASSERT_TRUE(server_.start());
  EXPECT_TRUE(
      has_logged("warning ignoring unknown environment variable "
                 "variable=DETENT_MEMROY nearest=DETENT_MEMORY"))
      << server_.log();
  EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Service, FeedsTheWatchdog) {
  write_settings("");
  server_.options().wrapper.emplace_back("WATCHDOG_USEC=20000");
  ASSERT_TRUE(server_.start());
  int fed = 0;
  bool is_ready = false;
  while (fed < 20 || !is_ready) {
    const std::string told = socket_.next().value();
    if (told == "WATCHDOG=1") ++fed;
    is_ready = is_ready || told == "READY=1";
  }
  EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Service, EndsWaitsAndStreamsOfARevokedToken) {
  const std::string tokens = folder_ / "tokens.toml";
  const auto write_tokens = [&tokens](const std::string& names) {
    std::ofstream out(tokens);
    for (const char name : names) {
      out << "[[token]]\nname = \"" << name << "\"\nscopes = [\"consume\"]\nsha256 = \""
          << server::to_hex(server::hash_token(std::string("dt_") + name)) << "\"\n";
    }
    out.close();
    chmod(tokens.c_str(), S_IRUSR | S_IWUSR);
  };
  write_tokens("ab");
  write_settings("auth = \"" + tokens + "\"\n");
  ASSERT_TRUE(server_.start());
  EXPECT_EQ(socket_.next(), "READY=1");
  const auto port = static_cast<std::uint16_t>(std::stoi(server_.url().substr(17)));
  const auto ask = [port](const std::string& line) {
    test::RawSocket client(port);
    client.send(line + " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer dt_a\r\n");
    return client;
  };
  test::RawSocket worker = ask("POST /v1/queues/q/lease");
  worker.send("Content-Length: 14\r\n\r\n{\"wait\":\"60s\"}");
  test::RawSocket watcher = ask("GET /v1/events?types=stats");
  watcher.send("\r\n");
  EXPECT_EQ(watcher.read(15), "HTTP/1.1 200 OK");
  std::string stats;
  while (stats.find("\"waiting_workers\":1") == std::string::npos) {
    test::RawSocket looks = ask("GET /v1/stats");
    looks.send("\r\n");
    stats = looks.read_response();
    ASSERT_TRUE(stats.starts_with("HTTP/1.1 200 ")) << stats;
  }
  write_tokens("b");
  server_.signal(SIGHUP);
  const std::string answer = worker.read_response();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 401 ")) << answer;
  EXPECT_TRUE(watcher.read_to_last_chunk().ends_with("0\r\n\r\n"));
  EXPECT_EQ(server_.stop(), 0);
}

TEST_F(Service, ContinuesWhenNobodyReadsItsLog) {
  const std::string log = folder_ / "log";
  ASSERT_EQ(::mkfifo(log.c_str(), S_IRUSR | S_IWUSR), 0);
  const int reader = ::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const std::vector<std::string> log_to_fifo{"sh", "-c", "exec \"$@\" 2> \"$0\"", log};
  auto& wrapper = server_.options().wrapper;
  wrapper.insert(wrapper.end(), log_to_fifo.begin(), log_to_fifo.end());
  write_settings("");
  ASSERT_TRUE(server_.start());
  EXPECT_EQ(socket_.next(), "READY=1");
  ::close(reader);
  server_.signal(SIGHUP);  // makes the server write to its log
  EXPECT_TRUE(socket_.next());
  EXPECT_EQ(socket_.next(), "READY=1");
  EXPECT_TRUE(test::client_of(server_.url()).ready());
  EXPECT_EQ(server_.stop(), 0);
}

bool is_sanitized() { return ::mallinfo2().uordblks == 0; }

TEST_F(Service, OutOfMemoryUnderLoadExitsWith1AndAReason) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer reserves memory without end";
  write_settings("");
  ASSERT_TRUE(server_.start());
  server_.limit_memory(std::size_t{16} << 20U);
  const auto port = static_cast<std::uint16_t>(std::stoi(server_.url().substr(17)));
  const std::string body(std::size_t{12} << 20U, ' ');
  std::vector<test::RawSocket> clients;
  for (int i = 0; i < 8 && server_.is_running(); ++i) {
    clients.emplace_back(port);
    clients.back().send(
        "POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 13000000\r\n\r\n");
    clients.back().send(body);
  }
  EXPECT_EQ(server_.await_exit(), 1);
  EXPECT_TRUE(has_logged("out of memory, threads or descriptors; the process ends"))
      << server_.log();
}

TEST_F(Service, TooLittleMemoryAtTheStartExitsWith1AndAReason) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer reserves memory without end";
  write_settings("");
  int failed = 0;
  for (int mebibytes = 100; mebibytes <= 500; mebibytes += 20) {
    server_.options().wrapper = {"prlimit", "--as=" + std::to_string(mebibytes << 20U)};
    const std::string before = server_.log();
    if (server_.start()) break;
    if (server_.exit_status() == 127) continue;  // the dynamic linker ran out of memory
    ++failed;
    EXPECT_EQ(server_.exit_status(), 1) << mebibytes << " MiB: " << server_.log();
    EXPECT_GT(server_.log().size(), before.size()) << mebibytes << " MiB";
  }
  EXPECT_GT(failed, 0);
}

TEST_F(Service, ATooLargeBodyCostsNoMemory) {
  constexpr std::size_t kGrowth = std::size_t{8} << 20U;
  write_settings("");
  ASSERT_TRUE(server_.start());
  test::RawSocket greedy(server_.beanstalk_port());
  ASSERT_TRUE(greedy.send("put 0 0 0 3000000000\r\n"));
  const std::size_t before = server_.resident_bytes();
  const std::string part(std::size_t{1} << 20U, 'x');
  for (int i = 0; i < 128; ++i) ASSERT_TRUE(greedy.send(part));
  EXPECT_LT(server_.resident_bytes(), before + kGrowth);
  test::RawSocket other(server_.beanstalk_port());
  ASSERT_TRUE(other.send("put 0 0 0 1\r\nx\r\n"));
  EXPECT_EQ(other.read(9), "INSERTED ");
  EXPECT_EQ(server_.stop(), 0);
}

}  // namespace
}  // namespace detent
