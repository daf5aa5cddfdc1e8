#include "store/postgres/connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "store/postgres/postgres_error.h"

namespace detent {

namespace {

constexpr std::chrono::milliseconds kLeastSilence{1000};
constexpr std::chrono::milliseconds kMostSilence{5000};

/// What a URL leaves open. A dead peer is noticed in half a minute, whatever the system's settings.
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

Error error_of(const PGresult* result) {
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* const message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return postgres_error(state == nullptr ? "" : state,
                        message == nullptr ? PQresultErrorMessage(result) : message);
}

}  // namespace

Result<void> Connection::connect() {
  std::array<const char*, kDefaults.size() + 3> names{};
  std::array<const char*, kDefaults.size() + 3> values{};
  for (std::size_t i = 0; i < kDefaults.size(); ++i) {
    names[i] = kDefaults[i].first;
    values[i] = kDefaults[i].second;
  }
  names[kDefaults.size()] = "dbname";  // expanded to all that the URL says
  values[kDefaults.size()] = options_.url.c_str();
  names[kDefaults.size() + 1] = "fallback_application_name";
  values[kDefaults.size() + 1] = options_.application_name.c_str();
  connection_.reset(PQconnectdbParams(names.data(), values.data(), /*expand_dbname=*/1));
  PGconn* const made = connection_.get();
  if (made == nullptr) return Error{ErrorCode::resource_exhausted, "no memory to connect", ""};
  if (PQstatus(made) != CONNECTION_OK) return broken();
  PQsetNoticeProcessor(
      made, [](void*, const char*) {}, nullptr);
  if (PQsetnonblocking(made, 1) != 0 || PQenterPipelineMode(made) != 1) return broken();
  return ok();
}

Error Connection::broken() {
  Error error = postgres_error("", connection_ ? PQerrorMessage(connection_.get()) : "");
  close();
  return error;
}

/// They hold until the end of the transaction, so a pooler's next client sees nothing of them.
/// Lookups go by index whatever the statistics say: tables that were empty a moment ago have none.
/// And pages by the index of their order: where few rows are known another one looks as cheap, with
/// all rows of the shard read and sorted for each page.
/// What that makes the planner think of the costs would be worth compiling each statement.
Statement Connection::settings(CommitMode mode) const {
  Statement statement;
  const std::string commit =
      mode == CommitMode::buffered
          ? "set_config('synchronous_commit', 'off', true)"
          : "set_config('synchronous_commit', case current_setting('synchronous_commit') when "
            "'off' "
            "then 'on' else current_setting('synchronous_commit') end, true)";
  statement.set_sql("select " + commit + ", set_config('statement_timeout', '" +
                    milliseconds_text(options_.statement_timeout) +
                    "', true), set_config('idle_in_transaction_session_timeout', '" +
                    milliseconds_text(options_.idle_timeout) +
                    "', true), set_config('jit', 'off', true)"
                    ", set_config('enable_seqscan', 'off', true)"
                    ", set_config('enable_hashjoin', 'off', true)"
                    ", set_config('enable_mergejoin', 'off', true)"
                    ", set_config('enable_sort', 'off', true)");
  return statement;
}

bool Connection::send_one(const Statement& statement) {
  std::vector<const char*> values;
  std::vector<int> sizes;
  for (const std::string& value : statement.values()) {
    values.push_back(value.data());
    sizes.push_back(static_cast<int>(value.size()));
  }
  const std::vector<int> formats(values.size(), 1);
  return PQsendQueryParams(connection_.get(), statement.sql().c_str(),
                           static_cast<int>(values.size()), statement.types().data(), values.data(),
                           sizes.data(), formats.data(), /*resultFormat=*/1) == 1;
}

bool Connection::send(const std::vector<Statement>& statements, CommitMode mode) {
  if (!send_one(settings(mode))) return false;
  for (const Statement& statement : statements) {
    if (!send_one(statement)) return false;
  }
  return PQpipelineSync(connection_.get()) == 1 && flush();
}

/// The server may have to be heard before it takes more.
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

/// The answers to what was sent, up to the end of the transaction. A failure at the very end, when
/// it commits, comes as a result of its own.
Result<std::vector<Rows>> Connection::collect(std::size_t statements) {
  std::vector<Rows> all;
  std::optional<Error> error;
  std::size_t ended = 0;
  for (;;) {
    const std::optional<PGresult*> result = next_result();
    if (!result) return broken();
    if (*result == nullptr) {
      if (PQstatus(connection_.get()) != CONNECTION_OK) return broken();
      if (++ended > 2 * statements + 2) return broken();  // nothing more can come
      continue;
    }
    Rows rows(*result);
    const ExecStatusType status = PQresultStatus(*result);
    if (status == PGRES_PIPELINE_SYNC) break;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      all.push_back(std::move(rows));
    } else if (status != PGRES_PIPELINE_ABORTED) {
      if (!error) error = error_of(*result);
      if (PQstatus(connection_.get()) != CONNECTION_OK) break;
    }
  }
  if (!error && all.size() == statements) return all;
  // What is left of it, an open transaction say, goes with the connection.
  if (PQtransactionStatus(connection_.get()) != PQTRANS_IDLE) close();
  if (error) return *std::move(error);
  return Error{ErrorCode::internal, "PostgreSQL answered something else than was asked", ""};
}

Result<std::vector<Rows>> Connection::run(const std::vector<Statement>& statements,
                                          CommitMode mode) {
  if (!is_open()) TRY(connect());
  if (!send(statements, mode)) return broken();
  ASSIGN_OR_RETURN(std::vector<Rows> all, collect(statements.size() + 1));
  all.erase(all.begin());  // of the settings
  return all;
}

Result<Rows> Connection::run_one(Statement statement, CommitMode mode) {
  std::vector<Statement> statements;
  statements.push_back(std::move(statement));
  ASSIGN_OR_RETURN(std::vector<Rows> all, run(statements, mode));
  return std::move(all.front());
}

}  // namespace detent
