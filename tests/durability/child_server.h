// Runs the server as a separate process, under limits and tools that a test chooses. Tests kill it,
// take its resources away, trace it and measure it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/testing/test_folder.h"

namespace detent {

/// The thread that started the process must outlive the process. The destructor kills a running
/// process. Thread-compatible.
class ChildServer {
 public:
  struct Options {
    std::string program;                    // the detent binary
    std::string data;                       // its data folder
    std::vector<std::string> flags = {};    // additional flags of `detent serve`
    std::string log_level = "warning";      // empty: without the flag
    std::vector<std::string> wrapper = {};  // a command that executes the program with the same pid
    std::optional<std::size_t> open_files = {};  // the hard limit of file descriptors
    std::optional<rlim_t> soft_open_files = {};  // the soft limit; default: the hard limit
  };
  explicit ChildServer(Options options) : options_(std::move(options)) {}
  ~ChildServer();
  ChildServer(const ChildServer&) = delete;
  ChildServer& operator=(const ChildServer&) = delete;

  Options& options() noexcept { return options_; }

  /// Starts the server and waits until it reports that it is ready. The first start uses a free
  /// port, and later starts use the same port. Errors: unavailable if the process ends, or is not
  /// ready after a minute.
  Result<void> start();
  /// Starts the process and does not wait.
  Result<void> spawn();
  /// Waits at most `patience`. Returns true if the server has reported that it is ready. Errors:
  /// unavailable if the process has ended.
  Result<bool> await_ready(std::chrono::milliseconds patience);
  /// Sends SIGKILL, and returns when the process has ended.
  void kill();
  /// Sends SIGTERM, and returns the exit status, -1 after a crash.
  int stop();
  void signal(int number) const;
  /// Sets the largest size of the process's files. RLIM_INFINITY removes the limit.
  void limit_file_bytes(rlim_t bytes) const;
  /// Limits the process's address space to its present size plus `more` bytes.
  void limit_memory(std::size_t more) const;
  /// Waits until the process ends. Returns the exit status, -1 after a crash.
  int await_exit();
  /// Returns false if the process has ended or crashed.
  bool is_running();
  /// The exit status after the process has ended; -1 if it crashed or was killed.
  int exit_status() const noexcept { return exit_status_; }

  /// Returns "http://127.0.0.1:PORT".
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::uint16_t http_port() const noexcept { return port_; }
  /// The port for beanstalk clients, known once the server is ready. Each start uses another port.
  std::uint16_t beanstalk_port() const noexcept { return beanstalk_port_; }
  /// Returns the log of all starts. The log file is outside the data folder, and not on its disk.
  std::string log() const;
  /// The resident memory of the process, at present and at its peak, in bytes.
  std::size_t resident_bytes() const { return status_kib("VmRSS:") * 1'024; }
  std::size_t peak_resident_bytes() const { return status_kib("VmHWM:") * 1'024; }
  std::size_t open_descriptors() const;

 private:
  std::string log_file() const { return log_folder_ / "log"; }
  std::vector<std::string> command() const;
  [[noreturn]] void become(const std::vector<char*>& arguments, int out) const;
  void await_end();
  void close_pipe();
  std::size_t status_kib(const std::string& field) const;

  Options options_;
  TestFolder log_folder_;
  std::uint16_t port_ = 0;
  std::uint16_t beanstalk_port_ = 0;
  pid_t pid_ = -1;
  int out_ = -1;  // the read end of the process's standard output
  std::string said_;
  int exit_status_ = 0;
};

}  // namespace detent
