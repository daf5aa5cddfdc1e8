#include "tests/durability/child_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "detent/clock.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kHttp = "ready at http://127.0.0.1:";
constexpr std::string_view kBeanstalk = "beanstalk at 127.0.0.1:";

/// Returns the port that follows `where` in a complete line.
std::optional<std::uint16_t> find_port(const std::string& said, std::string_view where) {
  const std::size_t at = said.find(where);
  if (at == std::string::npos || said.find('\n', at) == std::string::npos) return std::nullopt;
  std::uint16_t port = 0;
  std::from_chars(said.data() + at + where.size(), said.data() + said.size(), port);
  return port;
}

void set_soft_limit(pid_t process, __rlimit_resource resource, rlim_t soft) {
  rlimit limit{};
  ::prlimit(process, resource, nullptr, &limit);
  limit.rlim_cur = std::min(soft, limit.rlim_max);
  ::prlimit(process, resource, &limit, nullptr);
}

}  // namespace

ChildServer::~ChildServer() { kill(); }

Result<void> ChildServer::start() {
  TRY(spawn());
  ASSIGN_OR_RETURN(const bool is_ready, await_ready(std::chrono::minutes{1}));
  if (is_ready) return ok();
  return Error{ErrorCode::unavailable, "the server is not ready after a minute", ""};
}

std::vector<std::string> ChildServer::command() const {
  std::vector<std::string> words = options_.wrapper;
  for (const char* const word :
       {options_.program.c_str(), "serve", "--data", options_.data.c_str(), "--http"}) {
    words.emplace_back(word);
  }
  words.push_back("127.0.0.1:" + std::to_string(port_));
  words.emplace_back("--beanstalk");
  words.emplace_back("127.0.0.1:0");
  if (!options_.log_level.empty()) words.push_back("--log-level=" + options_.log_level);
  words.insert(words.end(), options_.flags.begin(), options_.flags.end());
  return words;
}

Result<void> ChildServer::spawn() {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return Error{ErrorCode::internal, "no pipe", ""};
  std::vector<std::string> words = command();
  std::vector<char*>
      arguments;  // built before the fork, because the child must not allocate memory
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) become(arguments, pipe[1]);
  ::close(pipe[1]);
  close_pipe();
  out_ = pipe[0];
  said_.clear();
  return ok();
}

/// Runs in the child process: executes the server, with `out` as its standard output.
void ChildServer::become(const std::vector<char*>& arguments, int out) const {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the server ends if the test process dies
  const int log = ::open(log_file().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  if (options_.open_files) {
    const rlim_t most = *options_.open_files;
    const rlimit limit{.rlim_cur = options_.soft_open_files.value_or(most), .rlim_max = most};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ::execvp(arguments.front(), arguments.data());
  std::perror(arguments.front());
  std::_Exit(127);
}

Result<bool> ChildServer::await_ready(milliseconds patience) {
  const SystemClock clock;
  const MonotonicTime until = clock.now() + patience;
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(until - clock.now());
    pollfd readable{.fd = out_, .events = POLLIN, .revents = 0};
    const int wait = static_cast<int>(std::max(left, milliseconds{0}).count());
    if (::poll(&readable, 1, wait) <= 0) return false;
    std::array<char, 512> part{};
    const ssize_t n = ::read(out_, part.data(), part.size());
    if (n <= 0) break;
    said_.append(part.data(), static_cast<std::size_t>(n));
    if (const auto port = find_port(said_, kHttp)) {
      port_ = *port;
      beanstalk_port_ = find_port(said_, kBeanstalk).value_or(0);
      return true;
    }
  }
  await_end();
  return Error{ErrorCode::unavailable, "the server has gone; its log: " + log(), ""};
}

void ChildServer::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  await_end();
}

int ChildServer::stop() {
  if (pid_ > 0) ::kill(pid_, SIGTERM);
  await_end();
  return exit_status_;
}

void ChildServer::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void ChildServer::limit_file_bytes(rlim_t bytes) const {
  set_soft_limit(pid_, RLIMIT_FSIZE, bytes);
}

void ChildServer::limit_memory(std::size_t more) const {
  set_soft_limit(pid_, RLIMIT_AS, status_kib("VmSize:") * 1'024 + more);
}

int ChildServer::await_exit() {
  await_end();
  return exit_status_;
}

bool ChildServer::is_running() {
  if (pid_ <= 0) return false;
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
  if (ended.si_pid == 0) return true;
  await_end();
  return false;
}

void ChildServer::await_end() {
  if (pid_ > 0) {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  pid_ = -1;
  close_pipe();
}

void ChildServer::close_pipe() {
  if (out_ >= 0) ::close(out_);
  out_ = -1;
}

std::string ChildServer::log() const {
  std::ifstream file(log_file());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::size_t ChildServer::open_descriptors() const {
  const std::filesystem::directory_iterator first("/proc/" + std::to_string(pid_) + "/fd");
  return static_cast<std::size_t>(std::distance(first, std::filesystem::directory_iterator{}));
}

std::size_t ChildServer::status_kib(const std::string& field) const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
  std::string word;
  std::size_t kib = 0;
  while (file >> word) {
    if (word == field) file >> kib;
  }
  return kib;
}

}  // namespace detent
