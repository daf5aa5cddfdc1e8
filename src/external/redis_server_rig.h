// A real redis-server for one test, with its own socket and folder. It is killed at the end of the
// test, and also when the test process dies first. A test can kill it, and start it again with the
// same data.
//
// The rig does not sleep: it waits until the server reports on standard output that it is ready.
// Tests only.
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "external/redis_session.h"

namespace detent::test {

class RedisServer {
 public:
  /// `settings` are added to the command line, for example {"--requirepass", "secret"}.
  explicit RedisServer(std::vector<std::string> settings = {}) : settings_(std::move(settings)) {
    std::string path = (std::filesystem::temp_directory_path() / "detent-redis-XXXXXX").string();
    DETENT_CHECK(::mkdtemp(path.data()) != nullptr);
    folder_ = path;
  }
  ~RedisServer() {
    kill();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  /// Starts the server with the data in the folder. Returns "", or the reason for a failure.
  std::string start() {
    std::array<int, 2> ends{};
    DETENT_CHECK(::pipe(ends.data()) == 0);
    std::vector<std::string> words = command_line();
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) run(ends, arguments.data());
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
    return await_ready();
  }

  /// Kills the server with signal 9, and also its children, which rewrite its log.
  void kill() {
    if (process_ > 0) {
      kill_only();
      ::waitpid(process_, nullptr, 0);
      process_ = 0;
    }
    if (output_ != nullptr) std::fclose(std::exchange(output_, nullptr));
  }
  /// Only sends the signal, so another thread may call it. Call kill() later for the clean-up.
  void kill_only() const {
    // The server has no process group of its own until run() has created one.
    if (::kill(-process_, SIGKILL) != 0) ::kill(process_, SIGKILL);
  }
  /// Stops the process. It does nothing until go_on().
  void pause() const {
    ::kill(process_, SIGSTOP);
    ::waitpid(process_, nullptr, WUNTRACED);
  }
  void go_on() const { ::kill(process_, SIGCONT); }

  /// Copies the data of the server. Call it only while the server does not run.
  void copy_log_to(const std::filesystem::path& copy) const {
    std::filesystem::copy(folder_ / kLog, copy, std::filesystem::copy_options::recursive);
  }
  void put_log_back(const std::filesystem::path& copy) const {
    std::filesystem::remove_all(folder_ / kLog);
    std::filesystem::copy(copy, folder_ / kLog, std::filesystem::copy_options::recursive);
  }

  std::string socket() const { return folder_ / "socket"; }
  /// Options with a long timeout. A test that needs a timeout sets a short one itself.
  RedisOptions options() const {
    return {.address = socket(),
            .folder = "folder-1",
            .timeouts = {.connect = kPatience, .command = kPatience}};
  }

 private:
  static constexpr std::chrono::milliseconds kPatience{30'000};
  static constexpr const char* kLog = "appendonlydir";

  std::vector<std::string> command_line() const {
    std::vector<std::string> words{
        "redis-server", "--port",      "0", "--unixsocket", socket(), "--dir",
        folder_,        "--save",      "",  "--appendonly", "yes",    "--appendfsync",
        "always",       "--daemonize", "no"};
    words.insert(words.end(), settings_.begin(), settings_.end());
    return words;
  }
  [[noreturn]] static void run(const std::array<int, 2>& ends, char** arguments) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execvp(arguments[0], arguments);
    ::_exit(127);
  }
  std::string await_ready() {
    std::string said;
    std::array<char, 512> line{};
    while (std::fgets(line.data(), line.size(), output_) != nullptr) {
      said += line.data();
      if (said.find("ready to accept connections at") != std::string::npos) return "";
    }
    if (said.empty()) return "there is no redis-server; install it: ./dev setup full";
    return "redis-server ended: " + said;
  }

  std::vector<std::string> settings_;
  std::filesystem::path folder_;
  pid_t process_ = 0;
  std::FILE* output_ = nullptr;
};

}  // namespace detent::test
