// A PostgreSQL server and a pgbouncer for one test program. They live in a temporary folder, are
// reached by a socket file in it, and end with the object. If the test runs as root, they run under
// the account `postgres`, because PostgreSQL refuses to run as root. If one of these functions
// fails, the test is broken and the process stops.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/thread.h"
#include "store/postgres/statement.h"

namespace detent {

/// A server program in a child process. A thread reads its output, so that it never blocks.
class ServerChild {
 public:
  ServerChild() = default;
  ~ServerChild();
  ServerChild(const ServerChild&) = delete;
  ServerChild& operator=(const ServerChild&) = delete;

  /// Starts the program. Returns after its output contains `ready`.
  void start(const std::vector<std::string>& command, const std::string& ready);
  /// Sends the signal. Returns after the program and all its children have ended.
  void end(int signal);
  bool is_running() const noexcept { return process_ > 0; }

 private:
  pid_t process_ = -1;
  int output_ = -1;
  Thread reader_;
};

class PrivateCluster {
 public:
  /// With `off`, a crash of the machine loses data, but tests are fast.
  enum class Fsync : std::uint8_t { off, on };
  explicit PrivateCluster(Fsync fsync = Fsync::off);
  ~PrivateCluster();
  PrivateCluster(const PrivateCluster&) = delete;
  PrivateCluster& operator=(const PrivateCluster&) = delete;

  void start();
  /// Like `pg_ctl stop -m fast`: closes all connections.
  void stop();
  /// Sends SIGKILL, to simulate a crash. Data that was neither on disk nor given to the kernel is
  /// lost.
  void kill();

  /// Creates an empty database and returns its URL.
  std::string new_database();
  const std::string& folder() const noexcept { return folder_; }

 private:
  std::string folder_;
  Fsync fsync_;
  ServerChild server_;
  int databases_ = 0;
};

/// A pgbouncer in transaction mode in front of a cluster. The cluster must outlive it.
class PrivateBouncer {
 public:
  explicit PrivateBouncer(const PrivateCluster& cluster);
  ~PrivateBouncer();
  PrivateBouncer(const PrivateBouncer&) = delete;
  PrivateBouncer& operator=(const PrivateBouncer&) = delete;

  /// The URL of the same database through the pgbouncer.
  std::string through(const std::string& url) const;

 private:
  std::string folder_;
  const PrivateCluster& cluster_;
  ServerChild bouncer_;
};

/// Runs SQL on a connection of its own. Returns the rows as text.
Rows execute(const std::string& url, const std::string& sql);
/// The first value of the first row, or "" if there is none.
std::string value_of(const std::string& url, const std::string& sql);

/// From now on the database refuses a change to the data of a shard if the transaction does not
/// also change the row of the shard. A session is exempt if it sets session_replication_role =
/// replica.
void refuse_unfenced_changes(const std::string& url);

/// A cluster that all tests of a program share.
PrivateCluster& shared_cluster();

}  // namespace detent
