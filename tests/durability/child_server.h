// The server as a process of its own, under the limits and tools a test chooses: to be killed,
// starved, traced and measured.
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
#include "base/test_folder.h"

namespace detent {

/// Thread-compatible. The thread that started the process must outlive it. Destruction kills what
/// still runs.
class ChildServer {
 public:
  struct Options {
    std::string program;                         // the detent binary
    std::string data;                            // its data folder
    std::vector<std::string> flags = {};         // more of `detent serve`
    std::string log_level = "warning";           // empty: no flag says it
    std::vector<std::string> wrapper = {};       // runs the program in its own place, with its pid
    std::optional<std::size_t> open_files = {};  // most file descriptors
    std::optional<rlim_t> soft_open_files = {};  // fewer at first, which it may raise
  };
  explicit ChildServer(Options options) : options_(std::move(options)) {}
  ~ChildServer();
  ChildServer(const ChildServer&) = delete;
  ChildServer& operator=(const ChildServer&) = delete;

  Options& options() noexcept { return options_; }

  /// Starts it and waits until it says that it is ready. The first start takes a free port, the
  /// later ones the same again. Errors: unavailable when it has gone, or says nothing for a minute.
  Result<void> start();
  /// Only starts it.
  Result<void> spawn();
  /// Whether it has said that it is ready, waiting at most so long. Errors: unavailable when it has
  /// gone.
  Result<bool> await_ready(std::chrono::milliseconds patience);
  /// kill -9; returns when the process is gone.
  void kill();
  /// SIGTERM; returns the exit status, -1 when it crashed.
  int stop();
  void signal(int number) const;
  /// From now on none of its files may grow beyond this; RLIM_INFINITY: they may again.
  void limit_file_bytes(rlim_t bytes) const;
  /// From now on it gets no more memory than it has, and `more`.
  void limit_memory(std::size_t more) const;
  /// Waits until it has ended by itself, and returns its exit status, -1 when it crashed.
  int await_exit();
  /// Whether it has neither ended nor crashed.
  bool is_running();
  /// Once it has gone: its exit status, -1 when it crashed or was killed.
  int exit_status() const noexcept { return exit_status_; }

  /// "http://127.0.0.1:PORT"
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::uint16_t http_port() const noexcept { return port_; }
  /// Where it listens for beanstalk clients since it was ready; another port at each start.
  std::uint16_t beanstalk_port() const noexcept { return beanstalk_port_; }
  /// What all its starts wrote to their log, which is not on the data folder's disk.
  std::string log() const;
  /// Memory that it has in use now, and had at most, in bytes.
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
  int out_ = -1;  // its standard output
  std::string said_;
  int exit_status_ = 0;
};

}  // namespace detent
