// A PostgreSQL of a test's own, and a pgbouncer before it: in a temporary folder, reached by a
// socket file there, gone with the object. As root they run under the account `postgres`, because
// PostgreSQL refuses root. For tests; a failure here is a broken test and stops the process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/thread.h"
#include "store/postgres/statement.h"

namespace detent {

/// A server program whose output is read to its end.
class ServerChild {
 public:
  ServerChild() = default;
  ~ServerChild();
  ServerChild(const ServerChild&) = delete;
  ServerChild& operator=(const ServerChild&) = delete;

  /// Returns once its output contains `ready`.
  void start(const std::vector<std::string>& command, const std::string& ready);
  /// Sends the signal and returns once it and all that it started have gone.
  void end(int signal);
  bool is_running() const noexcept { return process_ > 0; }

 private:
  pid_t process_ = -1;
  int output_ = -1;
  Thread reader_;
};

class PrivateCluster {
 public:
  /// With `off`, nothing is safe from a crash of the machine, and tests are quick.
  enum class Fsync : std::uint8_t { off, on };
  explicit PrivateCluster(Fsync fsync = Fsync::off);
  ~PrivateCluster();
  PrivateCluster(const PrivateCluster&) = delete;
  PrivateCluster& operator=(const PrivateCluster&) = delete;

  void start();
  /// As `pg_ctl stop -m fast`: every connection is cut.
  void stop();
  /// SIGKILL, as for a machine that fails: what was not on disk, or in the kernel's hands, is lost.
  void kill();

  /// An empty database.
  std::string new_database();
  const std::string& folder() const noexcept { return folder_; }

 private:
  std::string folder_;
  Fsync fsync_;
  ServerChild server_;
  int databases_ = 0;
};

/// A pgbouncer in transaction mode before a cluster that outlives it.
class PrivateBouncer {
 public:
  explicit PrivateBouncer(const PrivateCluster& cluster);
  ~PrivateBouncer();
  PrivateBouncer(const PrivateBouncer&) = delete;
  PrivateBouncer& operator=(const PrivateBouncer&) = delete;

  /// The same database by way of the pgbouncer.
  std::string through(const std::string& url) const;

 private:
  std::string folder_;
  const PrivateCluster& cluster_;
  ServerChild bouncer_;
};

/// Runs SQL as a client of its own and answers the rows, as text.
Rows execute(const std::string& url, const std::string& sql);
/// The first value of the first row; "" when there is none.
std::string value_of(const std::string& url, const std::string& sql);

/// From now on the database refuses a change of what a shard has by a transaction that does not
/// change the shard's own row, too. A session may be excepted: session_replication_role = replica.
void refuse_unfenced_changes(const std::string& url);

/// The cluster that all tests of a program share.
PrivateCluster& shared_cluster();

}  // namespace detent
