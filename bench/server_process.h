// A server as a process of ours: started on a free port, measured by the kernel's books, and ended
// with all its children, however it groups them (PostgreSQL gives each a session of its own).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/process_cost.h"

namespace detent::bench {

/// CPU time in seconds, all cores together.
struct CpuUse {
  double everybody = 0;
  double ours = 0;  ///< this process, and servers that have ended
};
CpuUse cpu_use();

/// Who a server runs as.
struct Account {
  uid_t user;
  gid_t group;
};

/// Ourselves; but when we are root, an account without rights, for servers that refuse root.
Account unprivileged_account();

/// A TCP port of 127.0.0.1 that nobody listened on a moment ago.
std::uint16_t free_port();

/// The program of this name in PATH or in `more_folders`; empty when there is none.
std::filesystem::path find_program(const std::string& name,
                                   const std::vector<std::filesystem::path>& more_folders = {});

/// Bytes of the files under a folder, without what is only reserved. PostgreSQL's log of changes
/// (pg_wal), which is recycled at a size of its own, is left out.
std::uint64_t disk_bytes(const std::filesystem::path& folder);

struct ProcessOptions {
  std::vector<std::string> command;
  std::filesystem::path log;  ///< where its output goes
  Account account;
};

/// Thread-compatible. The process ends with this object, and with this program.
class ServerProcess {
 public:
  /// Throws ServerError when there is no such program.
  explicit ServerProcess(const ProcessOptions& options);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Throws ServerError, with the end of its log, when the process has ended.
  void check_alive();

  /// SIGKILL to it and all its children; returns when they are gone. Does nothing the second time.
  void kill();

  /// Waits for the process to end by itself. Throws ServerError unless it exits with 0.
  void wait_until_done();

  /// Proportional set size, its children's included: what is shared counts once.
  std::uint64_t memory_bytes() const;

  /// Of the process alone, without children; what threads used that have ended is not in it.
  ProcessCost cost() const { return process_cost(id_); }

 private:
  std::string end_of_log() const;

  std::filesystem::path log_;
  pid_t id_ = 0;  // 0 once it has ended and been waited for
};

}  // namespace detent::bench
