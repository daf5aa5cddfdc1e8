#include "examples/orders/server_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace orders {
namespace {

using detent::Error;
using detent::ErrorCode;
using detent::Result;

/// In the child process: becomes the server, with its standard output on `out`.
[[noreturn]] void become(const std::filesystem::path& program, const std::filesystem::path& data,
                         std::uint16_t port, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // if this process ends, the server is killed too
  ::dup2(out, STDOUT_FILENO);
  const std::string address = "127.0.0.1:" + std::to_string(port);
  ::execl(program.c_str(), program.c_str(), "serve", "--data", data.c_str(), "--http",
          address.c_str(), "--beanstalk", "off", "--log-level", "warning", nullptr);
  std::perror(program.c_str());
  std::_Exit(127);
}

/// Reads until the server has printed its address or has ended.
Result<std::uint16_t> read_port(int in) {
  constexpr std::string_view kReady = "ready at http://127.0.0.1:";
  std::string said;
  std::array<char, 512> part{};
  for (ssize_t n = 0; (n = ::read(in, part.data(), part.size())) > 0;) {
    said.append(part.data(), static_cast<std::size_t>(n));
    const std::size_t at = said.find(kReady);
    if (at == std::string::npos || said.find('\n', at) == std::string::npos) continue;
    std::uint16_t port = 0;
    const char* digits = said.c_str() + at + kReady.size();
    std::from_chars(digits, said.c_str() + said.size(), port);
    return port;
  }
  return Error{ErrorCode::unavailable, "the server did not start; its output was: " + said};
}

}  // namespace

ServerProcess::~ServerProcess() { kill(); }

Result<void> ServerProcess::start() {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return Error{ErrorCode::internal, "cannot make a pipe for the server's output"};
  }
  pid_ = ::fork();
  if (pid_ == 0) become(program_, data_, port_, pipe[1]);
  ::close(pipe[1]);
  Result<std::uint16_t> port = read_port(pipe[0]);
  ::close(pipe[0]);
  if (!port) return port.error();
  port_ = *port;
  return detent::ok();
}

void ServerProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int ServerProcess::stop() {
  ::kill(pid_, SIGTERM);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace orders
