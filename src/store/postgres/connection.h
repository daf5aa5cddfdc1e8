// A connection to PostgreSQL. It sends several statements together and receives their results
// together (libpq's pipeline mode). So statements that belong together cost one round trip.
//
// For some dozens of rows, PostgreSQL needs more time to parse and plan a statement with arrays
// than to execute it. So statements that ask for it (Statement::keep_plan) are prepared at their
// first use, if the peer is PostgreSQL itself.
//
// A pooler such as pgbouncer gives each transaction any of its sessions, so prepared statements
// could belong to other clients. A pooler shows itself by the process number of the session,
// because pgbouncer invents this number. A connection that has met a pooler prepares no further
// statements. If a pooler passes on the real number of a session, a plan can be missing, or can
// already exist. Then the statement fails, the connection is closed, and the peer counts as a
// pooler. The name of a prepared statement is a hash of its text, so it is the same in all
// sessions, and a wrong statement never runs.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "store/postgres/statement.h"

namespace detent {

/// When run() returns: after its changes are on the disk of the database (synced), or in its memory
/// (buffered).
enum class CommitMode : std::uint8_t { synced, buffered };

struct ConnectionOptions {
  std::string url;
  /// The time limit of a statement in the database. If the connection receives nothing for this
  /// time plus as much again (at least 1 s, at most 5 s), the connection is lost.
  std::chrono::milliseconds statement_timeout = std::chrono::seconds{30};
  /// The longest time that an explicit transaction may be idle. Then the database ends it.
  std::chrono::milliseconds idle_timeout = std::chrono::seconds{5};
  /// The name that pg_stat_activity shows, unless the URL sets another name. PostgreSQL keeps the
  /// first 63 bytes.
  std::string application_name = "detent";
};

/// Thread-compatible.
class Connection {
 public:
  explicit Connection(ConnectionOptions options) : options_(std::move(options)) {}

  /// Runs the statements in their order as one transaction. Connects first if there is no
  /// connection. Returns the rows of each statement. If the statements include `begin`, the
  /// transaction continues in the following run()s until a `commit`. Errors: the error of the first
  /// failed statement; then nothing is changed. `unavailable` if the connection broke; then it is
  /// unknown whether all statements took effect or none did.
  Result<std::vector<Rows>> run(const std::vector<Statement>& statements,
                                CommitMode mode = CommitMode::synced);
  /// Like run(), with one statement.
  Result<Rows> run_one(Statement statement, CommitMode mode = CommitMode::synced);

  bool is_open() const noexcept { return connection_ != nullptr; }
  /// Closes the connection. An explicit transaction is rolled back.
  void close() noexcept;
  /// The number of statements that are prepared on this connection.
  std::size_t kept_plans() const noexcept { return kept_.size(); }

 private:
  struct Finish {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };

  /// The kinds of messages of a run. Each has a result, in the same order.
  enum class Sent : std::uint8_t { prepare, statement };
  struct Values;
  /// The kind of the peer, as far as earlier runs have shown. `pooler` is final.
  enum class Peer : std::uint8_t { unknown, server, pooler };
  /// The text of a statement → the name of its plan.
  using Plans = std::unordered_map<std::string, std::string>;

  Result<void> connect();
  bool send(const std::vector<Statement>& statements, CommitMode mode);
  bool send_one(const Statement& statement);
  bool send_kept(const Statement& statement);
  bool may_keep(const Statement& statement) const;
  bool flush();
  bool wait_until_ready(int events);
  /// The next result. It is null at the end of the results of a statement, and empty if the
  /// connection broke.
  std::optional<PGresult*> next_result();
  Result<std::vector<Rows>> collect();
  Error broken();
  Statement settings(CommitMode mode, const std::vector<Statement>& statements) const;

  const ConnectionOptions options_;
  std::unique_ptr<PGconn, Finish> connection_;
  Peer peer_ = Peer::unknown;
  Plans kept_;
  std::vector<Sent> sent_;  // the messages of the current run
};

}  // namespace detent
