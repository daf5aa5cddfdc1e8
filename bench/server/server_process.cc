#include "bench/server/server_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "bench/server/server_socket.h"
#include "detent/check.h"

namespace detent::bench {
namespace {

namespace fs = std::filesystem;

/// Does not return: becomes the server.
[[noreturn]] void become(const ProcessOptions& options, std::vector<char*>& arguments) {
  ::setpgid(0, 0);
  const int log = ::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  if (options.account.user != ::geteuid()) {
    const bool changed = ::setgroups(0, nullptr) == 0 && ::setgid(options.account.group) == 0 &&
                         ::setuid(options.account.user) == 0;
    if (!changed) _exit(126);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // after the change of user, which would reset it
  ::execv(arguments[0], arguments.data());
  std::perror(arguments[0]);
  _exit(127);
}

/// The process and its descendants.
std::vector<pid_t> family_of(pid_t process) {
  std::vector<pid_t> family{process};
  for (std::size_t i = 0; i < family.size(); ++i) {
    const std::string id = std::to_string(family[i]);
    std::ifstream children(fs::path("/proc") / id / "task" / id / "children");
    for (pid_t child = 0; children >> child;) family.push_back(child);
  }
  return family;
}

double seconds_of(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

CpuUse cpu_use() {
  rusage self{};
  rusage children{};
  ::getrusage(RUSAGE_SELF, &self);
  ::getrusage(RUSAGE_CHILDREN, &children);
  std::ifstream file("/proc/stat");  // "cpu", then user, nice, system, idle, iowait, irq, …
  std::string name;
  file >> name;
  double ticks = 0;
  double value = 0;
  for (int i = 0; i < 8 && file >> value; ++i) {
    if (i != 3 && i != 4) ticks += value;
  }
  return {.everybody = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)),
          .ours = seconds_of(self) + seconds_of(children)};
}

Account unprivileged_account() {
  if (::geteuid() != 0) return {::geteuid(), ::getegid()};
  for (const char* name : {"postgres", "nobody"}) {
    if (const passwd* entry = ::getpwnam(name); entry != nullptr) {
      return {entry->pw_uid, entry->pw_gid};
    }
  }
  return {65'534, 65'534};
}

std::uint16_t free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  DETENT_CHECK(::bind(probe, reinterpret_cast<sockaddr*>(&address), size) == 0);
  DETENT_CHECK(::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(probe);
  return ntohs(address.sin_port);
}

fs::path find_program(const std::string& name, const std::vector<fs::path>& more_folders) {
  std::vector<fs::path> folders;
  const char* path = std::getenv("PATH");
  std::istringstream parts(path == nullptr ? "" : path);
  for (std::string part; std::getline(parts, part, ':');) folders.emplace_back(part);
  folders.insert(folders.end(), more_folders.begin(), more_folders.end());
  for (const fs::path& folder : folders) {
    if (::access((folder / name).c_str(), X_OK) == 0) return folder / name;
  }
  return {};
}

std::uint64_t disk_bytes(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code gone;  // files come and go while the server runs
  for (auto entry = fs::recursive_directory_iterator(folder, gone);
       entry != fs::recursive_directory_iterator(); entry.increment(gone)) {
    if (entry->path().filename() == "pg_wal") entry.disable_recursion_pending();
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      bytes += static_cast<std::uint64_t>(std::min(status.st_size, status.st_blocks * 512));
    }
  }
  return bytes;
}

ServerProcess::ServerProcess(const ProcessOptions& options) : log_(options.log) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // after its end, this process can wait for its children
  std::vector<std::string> copies = options.command;
  std::vector<char*> arguments;
  for (std::string& copy : copies) arguments.push_back(copy.data());
  arguments.push_back(nullptr);
  id_ = ::fork();
  DETENT_CHECK(id_ >= 0);
  if (id_ == 0) become(options, arguments);
}

ServerProcess::~ServerProcess() { kill(); }

void ServerProcess::check_alive() {
  if (id_ != 0 && ::waitpid(id_, nullptr, WNOHANG) == 0) return;
  id_ = 0;
  throw ServerError("the server has ended: " + end_of_log());
}

void ServerProcess::kill() {
  if (id_ == 0) return;
  const std::vector<pid_t> family = family_of(id_);
  for (const pid_t process : family) ::kill(process, SIGKILL);
  for (const pid_t process : family) ::waitpid(process, nullptr, 0);
  id_ = 0;
}

void ServerProcess::wait_until_done() {
  int status = 0;
  ::waitpid(id_, &status, 0);
  id_ = 0;
  if (status != 0) throw ServerError("it failed: " + end_of_log());
}

std::uint64_t ServerProcess::memory_bytes() const {
  std::uint64_t kilobytes = 0;
  for (const pid_t process : family_of(id_)) {
    std::ifstream mappings("/proc/" + std::to_string(process) + "/smaps_rollup");
    for (std::string line; std::getline(mappings, line);) {
      if (line.starts_with("Pss:")) kilobytes += std::strtoull(line.c_str() + 4, nullptr, 10);
    }
  }
  return kilobytes * 1'024;
}

std::string ServerProcess::end_of_log() const {
  std::ifstream file(log_);
  std::string line;
  std::string last = "(it said nothing)";
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace detent::bench
