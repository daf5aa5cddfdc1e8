// A server as a child process: started on a free port, measured with figures of the kernel, and
// ended with all its children. Process groups are not enough for that, because PostgreSQL starts
// each child in a separate session.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/server/process_cost.h"

namespace detent::bench {

/// CPU time in seconds, summed over all cores.
struct CpuUse {
  double everybody = 0;
  double ours = 0;  ///< this process, and ended servers
};
CpuUse cpu_use();

/// The user of a server.
struct Account {
  uid_t user;
  gid_t group;
};

/// The current user. For root, a user without rights, because some servers refuse root.
Account unprivileged_account();

/// A TCP port of 127.0.0.1 that was free just before the call.
std::uint16_t free_port();

/// The program with this name in PATH or in `more_folders`; empty if it is not found.
std::filesystem::path find_program(const std::string& name,
                                   const std::vector<std::filesystem::path>& more_folders = {});

/// Bytes of the files under a folder, without reserved space. The write-ahead log of PostgreSQL
/// (pg_wal) is left out, because its size does not depend on the tasks.
std::uint64_t disk_bytes(const std::filesystem::path& folder);

struct ProcessOptions {
  std::vector<std::string> command;
  std::filesystem::path log;  ///< the file for its output
  Account account;
};

/// Thread-compatible. The process ends with this object, and with this program.
class ServerProcess {
 public:
  /// Throws ServerError if the program does not exist.
  explicit ServerProcess(const ProcessOptions& options);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Throws ServerError, with the end of its log, if the process has ended.
  void check_alive();

  /// Sends SIGKILL to the process and all its children, and returns when they have ended.
  /// Idempotent.
  void kill();

  /// Waits for the process to end by itself. Throws ServerError unless it exits with 0.
  void wait_until_done();

  /// Proportional set size of the process and its children. Shared memory counts once.
  std::uint64_t memory_bytes() const;

  /// Of the process without its children, and without threads that have ended.
  ProcessCost cost() const { return process_cost(id_); }

 private:
  std::string end_of_log() const;

  std::filesystem::path log_;
  pid_t id_ = 0;  // 0 after it has ended and was waited for
};

}  // namespace detent::bench
