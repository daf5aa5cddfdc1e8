// A connection to PostgreSQL: statements go out together and their answers come back together
// (libpq's pipeline mode), so what belongs together costs one round trip.
//
// To read and plan a statement with arrays costs the database more than to carry it out for some
// dozens of rows. So where PostgreSQL itself is at the other end, those that say so
// (Statement::keep_plan) are prepared when they come for the first time. A pooler gives each
// transaction some session, whose prepared statements are others'; one is told by the number of
// the session: pgbouncer makes one up. Whoever has met one prepares nothing any more. Should one
// pass a session's own number on, a plan may be missing, or be there before its time: that fails,
// ends the connection and tells that it is one. What a name stands for is the same in all sessions,
// because it is a hash of the text, so no other statement is run instead.
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

/// When run() answers: once its changes are on the database's disk, or in its memory.
enum class CommitMode : std::uint8_t { synced, buffered };

struct ConnectionOptions {
  std::string url;
  /// The most that a statement may take in the database. Nothing heard for as long again, but 1 to
  /// 5 seconds, is a lost connection.
  std::chrono::milliseconds statement_timeout = std::chrono::seconds{30};
  /// The most that an explicit transaction may stand still.
  std::chrono::milliseconds idle_timeout = std::chrono::seconds{5};
  /// What pg_stat_activity shows, unless the URL says otherwise; PostgreSQL keeps 63 bytes of it.
  std::string application_name = "detent";
};

/// Thread-compatible.
class Connection {
 public:
  explicit Connection(ConnectionOptions options) : options_(std::move(options)) {}

  /// Runs the statements as one transaction, in their order, connecting before if there is no
  /// connection; answers the rows of each. A `begin` among them makes it one with the run()s that
  /// follow, until a `commit`. Errors: of the first statement that failed, and nothing is changed;
  /// `unavailable` when the connection broke, which leaves open whether all of it is done or
  /// nothing.
  Result<std::vector<Rows>> run(const std::vector<Statement>& statements,
                                CommitMode mode = CommitMode::synced);
  /// The same with one statement.
  Result<Rows> run_one(Statement statement, CommitMode mode = CommitMode::synced);

  bool is_open() const noexcept { return connection_ != nullptr; }
  /// Ends an explicit transaction without its changes, too.
  void close() noexcept;
  /// How many statements the database has the plans of, for this connection.
  std::size_t kept_plans() const noexcept { return kept_.size(); }

 private:
  struct Finish {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };

  /// What the results of a run are, in their order.
  enum class Sent : std::uint8_t { prepare, statement };
  struct Values;
  /// What is at the other end, by the runs so far; a pooler for good.
  enum class Peer : std::uint8_t { unknown, server, pooler };
  using Plans = std::unordered_map<std::string, std::string>;  // names by text

  Result<void> connect();
  bool send(const std::vector<Statement>& statements, CommitMode mode);
  bool send_one(const Statement& statement);
  bool send_kept(const Statement& statement);
  bool may_keep(const Statement& statement) const;
  bool flush();
  bool wait_until_ready(int events);
  /// The next result; null at the end of a statement's. Nothing when the connection broke.
  std::optional<PGresult*> next_result();
  Result<std::vector<Rows>> collect();
  Error broken();
  Statement settings(CommitMode mode, const std::vector<Statement>& statements) const;

  const ConnectionOptions options_;
  std::unique_ptr<PGconn, Finish> connection_;
  Peer peer_ = Peer::unknown;
  Plans kept_;
  std::vector<Sent> sent_;  // in the run under way
};

}  // namespace detent
