#include "store/postgres/connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/fnv.h"
#include "detent/check.h"
#include "store/postgres/postgres_error.h"

namespace detent {

namespace {

constexpr std::chrono::milliseconds kLeastSilence{1000};
constexpr std::chrono::milliseconds kMostSilence{5000};
/// The largest number of plans of a connection. Each needs about 100 KiB in the database. There are
/// about a dozen forms of batches.
constexpr std::size_t kMostPlans = 64;

/// Settings for parameters that the URL does not set. With them, a dead peer is noticed within 30
/// s, independent of the settings of the system.
constexpr std::array<std::pair<const char*, const char*>, 7> kDefaults{{
    {"connect_timeout", "5"},
    {"keepalives_idle", "10"},
    {"keepalives_interval", "5"},
    {"keepalives_count", "3"},
    {"tcp_user_timeout", "30000"},
    {"client_encoding", "UTF8"},
    {"target_session_attrs", "read-write"},
}};

std::string milliseconds_text(std::chrono::milliseconds value) {
  return std::to_string(value.count());
}

std::string_view state_of(const PGresult* result) {
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return state == nullptr ? "" : state;
}

Error error_of(const PGresult* result) {
  const char* const message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return postgres_error(state_of(result),
                        message == nullptr ? PQresultErrorMessage(result) : message);
}

/// True if a prepared statement is missing, or exists already. Then this is another session than
/// before.
bool is_of_another_session(std::string_view state) { return state == "26000" || state == "42P05"; }

/// True if the result columns of a plan have changed since it was made. PostgreSQL refuses such a
/// plan until it is made again.
bool is_of_old_plan(std::string_view state) { return state == "0A000"; }

/// The name depends only on the text of the statement.
std::string plan_name(std::string_view sql) { return "detent_" + std::to_string(fnv1a(sql)); }

}  // namespace

Result<void> Connection::connect() {
  std::array<const char*, kDefaults.size() + 3> names{};
  std::array<const char*, kDefaults.size() + 3> values{};
  for (std::size_t i = 0; i < kDefaults.size(); ++i) {
    names[i] = kDefaults[i].first;
    values[i] = kDefaults[i].second;
  }
  names[kDefaults.size()] = "dbname";  // libpq expands the URL to its parameters
  values[kDefaults.size()] = options_.url.c_str();
  names[kDefaults.size() + 1] = "fallback_application_name";
  values[kDefaults.size() + 1] = options_.application_name.c_str();
  connection_.reset(PQconnectdbParams(names.data(), values.data(), /*expand_dbname=*/1));
  PGconn* const made = connection_.get();
  if (made == nullptr)
    return Error{ErrorCode::resource_exhausted, "not enough memory to connect to PostgreSQL", ""};
  if (PQstatus(made) != CONNECTION_OK) return broken();
  PQsetNoticeProcessor(
      made, [](void*, const char*) {}, nullptr);
  if (PQsetnonblocking(made, 1) != 0 || PQenterPipelineMode(made) != 1) return broken();
  return ok();
}

void Connection::close() noexcept {
  connection_.reset();
  kept_.clear();
  if (peer_ == Peer::server) peer_ = Peer::unknown;
}

Error Connection::broken() {
  Error error = postgres_error("", connection_ ? PQerrorMessage(connection_.get()) : "");
  close();
  return error;
}

/// Makes a statement with the settings for a transaction. They end with the transaction, so the
/// next client of a pooler does not see them.
///
///  - Sequential scans and the joins by hash or merge are off. So lookups use indexes even if the
///    statistics are wrong: a table that was just created has no statistics.
///  - Sorting is off, so a page uses the index of its order. If PostgreSQL knows of few rows,
///    another index can look equally cheap. But with that index, PostgreSQL reads and sorts all
///    rows of the shard for each page.
///  - JIT compilation is off. The settings above raise the estimated costs so much that compiling
///    each statement would look worthwhile.
///  - A kept plan is made once. Otherwise PostgreSQL would first plan it five times for the values
///    at hand.
Statement Connection::settings(CommitMode mode, const std::vector<Statement>& statements) const {
  Statement statement;
  const std::string commit =
      mode == CommitMode::buffered
          ? "set_config('synchronous_commit', 'off', true)"
          : "set_config('synchronous_commit', case current_setting('synchronous_commit') when "
            "'off' "
            "then 'on' else current_setting('synchronous_commit') end, true)";
  const bool keeps_all =
      std::ranges::all_of(statements, [this](const Statement& one) { return may_keep(one); });
  statement.set_sql(
      "select pg_backend_pid()::bigint, " + commit + ", set_config('statement_timeout', '" +
      milliseconds_text(options_.statement_timeout) +
      "', true), set_config('idle_in_transaction_session_timeout', '" +
      milliseconds_text(options_.idle_timeout) +
      "', true), set_config('jit', 'off', true)"
      ", set_config('enable_seqscan', 'off', true)"
      ", set_config('enable_hashjoin', 'off', true)"
      ", set_config('enable_mergejoin', 'off', true)"
      ", set_config('enable_sort', 'off', true)" +
      (keeps_all ? ", set_config('plan_cache_mode', 'force_generic_plan', true)" : ""));
  statement.keep_plan();
  return statement;
}

/// The values of a statement in the form that libpq needs.
struct Connection::Values {
  explicit Values(const Statement& statement) : formats(statement.values().size(), 1) {
    for (const std::string& value : statement.values()) {
      data.push_back(value.data());
      sizes.push_back(static_cast<int>(value.size()));
    }
  }
  int count() const { return static_cast<int>(data.size()); }

  std::vector<const char*> data;
  std::vector<int> sizes;
  std::vector<int> formats;
};

bool Connection::may_keep(const Statement& statement) const {
  return peer_ == Peer::server && statement.keeps_plan() &&
         (kept_.size() < kMostPlans || kept_.contains(statement.sql()));
}

bool Connection::send_one(const Statement& statement) {
  if (may_keep(statement)) return send_kept(statement);
  DETENT_CHECK(!statement.sql().empty());
  DETENT_CHECK(statement.types().size() == statement.values().size());
  const Values values(statement);
  sent_.push_back(Sent::statement);
  return PQsendQueryParams(connection_.get(), statement.sql().c_str(), values.count(),
                           statement.types().data(), values.data.data(), values.sizes.data(),
                           values.formats.data(), /*resultFormat=*/1) == 1;
}

bool Connection::send_kept(const Statement& statement) {
  PGconn* const connection = connection_.get();
  DETENT_CHECK(statement.types().size() == statement.values().size());
  const auto [kept, is_new] = kept_.try_emplace(statement.sql(), plan_name(statement.sql()));
  const char* const name = kept->second.c_str();
  if (is_new) {
    sent_.push_back(Sent::prepare);
    const int types = static_cast<int>(statement.types().size());
    if (PQsendPrepare(connection, name, statement.sql().c_str(), types, statement.types().data()) !=
        1) {
      return false;
    }
  }
  const Values values(statement);
  sent_.push_back(Sent::statement);
  return PQsendQueryPrepared(connection, name, values.count(), values.data.data(),
                             values.sizes.data(), values.formats.data(), /*resultFormat=*/1) == 1;
}

bool Connection::send(const std::vector<Statement>& statements, CommitMode mode) {
  sent_.clear();
  if (!send_one(settings(mode, statements))) return false;
  for (const Statement& statement : statements) {
    if (!send_one(statement)) return false;
  }
  return PQpipelineSync(connection_.get()) == 1 && flush();
}

/// Sends all queued data. It also reads, because the server may accept more data only after its
/// results are read.
bool Connection::flush() {
  PGconn* const connection = connection_.get();
  for (;;) {
    const int left = PQflush(connection);
    if (left <= 0) return left == 0;
    if (!wait_until_ready(POLLIN | POLLOUT)) return false;
    if (PQconsumeInput(connection) != 1) return false;
  }
}

bool Connection::wait_until_ready(int events) {
  pollfd socket{.fd = PQsocket(connection_.get()),
                .events = static_cast<decltype(pollfd::events)>(events),
                .revents = 0};
  const auto patience = options_.statement_timeout +
                        std::clamp(options_.statement_timeout, kLeastSilence, kMostSilence);
  for (;;) {
    const int ready = ::poll(&socket, 1, static_cast<int>(patience.count()));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

std::optional<PGresult*> Connection::next_result() {
  PGconn* const connection = connection_.get();
  while (PQisBusy(connection) == 1) {
    if (!wait_until_ready(POLLIN)) return std::nullopt;
    if (PQconsumeInput(connection) != 1) return std::nullopt;
  }
  return PQgetResult(connection);
}

/// Collects the results of all sent messages, up to the end of the transaction. If the commit
/// itself fails, its error is an extra result.
Result<std::vector<Rows>> Connection::collect() {
  std::vector<Rows> all;
  std::optional<Error> error;
  bool is_unsure = false;  // about the prepared statements of the session
  std::size_t good = 0;
  std::size_t ended = 0;
  for (;;) {
    const std::optional<PGresult*> result = next_result();
    if (!result) return broken();
    if (*result == nullptr) {
      if (PQstatus(connection_.get()) != CONNECTION_OK) return broken();
      if (++ended > 2 * sent_.size() + 2) return broken();  // no further results can come
      continue;
    }
    Rows rows(*result);
    const ExecStatusType status = PQresultStatus(*result);
    if (status == PGRES_PIPELINE_SYNC) break;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      const bool is_answer = good < sent_.size() && sent_[good] == Sent::statement;
      ++good;
      if (is_answer) all.push_back(std::move(rows));
    } else if (status != PGRES_PIPELINE_ABORTED) {
      const std::string_view state = state_of(*result);
      if (is_of_another_session(state)) peer_ = Peer::pooler;
      is_unsure |= is_of_another_session(state) || is_of_old_plan(state);
      if (!error) error = error_of(*result);
      if (PQstatus(connection_.get()) != CONNECTION_OK) break;
    }
  }
  if (!error && good == sent_.size()) return all;
  // Closing the connection ends an open transaction. It also drops statements that may or may not
  // have been prepared.
  is_unsure |= std::ranges::count(sent_, Sent::prepare) > 0;
  if (is_unsure || PQtransactionStatus(connection_.get()) != PQTRANS_IDLE) close();
  if (error) return *std::move(error);
  return Error{ErrorCode::internal, "unexpected result from PostgreSQL", ""};
}

Result<std::vector<Rows>> Connection::run(const std::vector<Statement>& statements,
                                          CommitMode mode) {
  DETENT_CHECK(!statements.empty());
  if (!is_open()) TRY(connect());
  if (!send(statements, mode)) return broken();
  ASSIGN_OR_RETURN(std::vector<Rows> all, collect());
  DETENT_CHECK(all.size() == statements.size() + 1);
  if (all.front().bigint(0, 0) != PQbackendPID(connection_.get())) {
    peer_ = Peer::pooler;
    kept_.clear();
  } else if (peer_ == Peer::unknown) {
    peer_ = Peer::server;
  }
  all.erase(all.begin());  // the rows of the settings
  return all;
}

Result<Rows> Connection::run_one(Statement statement, CommitMode mode) {
  std::vector<Statement> statements;
  statements.push_back(std::move(statement));
  ASSIGN_OR_RETURN(std::vector<Rows> all, run(statements, mode));
  return std::move(all.front());
}

}  // namespace detent
