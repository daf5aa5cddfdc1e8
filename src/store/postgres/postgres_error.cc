#include "store/postgres/postgres_error.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace detent {

namespace {

struct StateCode {
  std::string_view prefix;  // of the SQLSTATE; the first match counts
  ErrorCode code;
};

// https://www.postgresql.org/docs/15/errcodes-appendix.html
constexpr std::array kStateCodes{
    StateCode{"08", ErrorCode::unavailable},     // connection exceptions
    StateCode{"25006", ErrorCode::unavailable},  // a standby, or read-only at present
    StateCode{"0A000", ErrorCode::unavailable},  // the result columns of a plan have changed
    StateCode{"26000", ErrorCode::unavailable},  // a prepared statement is missing in this session
    StateCode{"42P05", ErrorCode::unavailable},  // a prepared statement exists already
    StateCode{"25P03", ErrorCode::unavailable},  // idle in a transaction for too long
    StateCode{"28", ErrorCode::invalid_argument},     // the login is refused
    StateCode{"3D", ErrorCode::invalid_argument},     // no such database
    StateCode{"40", ErrorCode::unavailable},          // deadlock, serialization
    StateCode{"42501", ErrorCode::invalid_argument},  // privileges
    StateCode{"53100", ErrorCode::resource_exhausted},
    StateCode{"53200", ErrorCode::resource_exhausted},
    StateCode{"53", ErrorCode::unavailable},     // too many connections
    StateCode{"55P03", ErrorCode::unavailable},  // a lock is not available
    StateCode{"57", ErrorCode::unavailable},     // shut down, starting up, timed out
    StateCode{"58030", ErrorCode::unavailable},  // I/O
    StateCode{"XX001", ErrorCode::data_loss},
    StateCode{"XX002", ErrorCode::data_loss},
};

ErrorCode code_of(std::string_view state) {
  if (state.empty()) return ErrorCode::unavailable;  // the connection broke, or was not made
  const auto found =
      std::find_if(kStateCodes.begin(), kStateCodes.end(),
                   [state](const StateCode& known) { return state.starts_with(known.prefix); });
  return found == kStateCodes.end() ? ErrorCode::internal : found->code;
}

/// True if a statement has read this word as a number, as statements of this program do on purpose.
bool is_refusal(std::string_view state, std::string_view message, std::string_view word) {
  return state == "22P02" && message.find("\"" + std::string(word) + "\"") != std::string::npos;
}

/// Joins the lines of a message of libpq. Leaves out its hints, which begin with a tab ("Is the
/// server running on that host and accepting TCP/IP connections?"), and a line that is there twice.
std::string one_line(std::string_view message) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < message.size();) {
    const std::size_t end = std::min(message.find('\n', at), message.size());
    const std::string_view line = message.substr(at, end - at);
    at = end + 1;
    const std::size_t size = line.find_last_not_of(" \t\r") + 1;
    if (size == 0 || line.front() == '\t') continue;
    lines.push_back(line.substr(0, size));
    if (std::ranges::count(lines, lines.back()) > 1) lines.pop_back();
  }
  std::string text;
  for (const std::string_view line : lines) text.append(text.empty() ? "" : "; ").append(line);
  std::ranges::replace(text, '\t', ' ');
  return text;
}

}  // namespace

Error postgres_error(std::string_view state, std::string_view message) {
  if (is_refusal(state, message, kFenced)) return fenced_error();
  if (is_refusal(state, message, kWritesMissing)) {
    return {ErrorCode::unavailable,
            "the database has lost the last writes: it crashed, or another database took over", ""};
  }
  if (is_refusal(state, message, kRowsMissing)) {
    return {ErrorCode::data_loss, "a task that should be changed or removed is not in the database",
            ""};
  }
  std::string text = one_line(message);
  if (!state.empty()) text += " (" + std::string(state) + ")";
  return {code_of(state), text.empty() ? "PostgreSQL gave no reason" : text, ""};
}

Error fenced_error() {
  return {ErrorCode::unavailable, "fenced: another server has taken over the shard", ""};
}

}  // namespace detent
