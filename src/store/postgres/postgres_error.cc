#include "store/postgres/postgres_error.h"

#include <algorithm>
#include <array>
#include <string>

namespace detent {

namespace {

struct StateCode {
  std::string_view prefix;  // of SQLSTATEs; the first that fits counts
  ErrorCode code;
};

// https://www.postgresql.org/docs/15/errcodes-appendix.html
constexpr std::array kStateCodes{
    StateCode{"08", ErrorCode::unavailable},          // connection exceptions
    StateCode{"25006", ErrorCode::unavailable},       // a standby, or read-only for now
    StateCode{"0A000", ErrorCode::unavailable},       // a plan whose columns have changed
    StateCode{"26000", ErrorCode::unavailable},       // what was prepared is another session's
    StateCode{"42P05", ErrorCode::unavailable},       // the same
    StateCode{"25P03", ErrorCode::unavailable},       // idle in a transaction for too long
    StateCode{"28", ErrorCode::invalid_argument},     // it does not let us in
    StateCode{"3D", ErrorCode::invalid_argument},     // no such database
    StateCode{"40", ErrorCode::unavailable},          // deadlock, serialization
    StateCode{"42501", ErrorCode::invalid_argument},  // privileges
    StateCode{"53100", ErrorCode::resource_exhausted},
    StateCode{"53200", ErrorCode::resource_exhausted},
    StateCode{"53", ErrorCode::unavailable},     // too many connections
    StateCode{"55P03", ErrorCode::unavailable},  // a lock that is not to be had
    StateCode{"57", ErrorCode::unavailable},     // shut down, starting up, timed out
    StateCode{"58030", ErrorCode::unavailable},  // I/O
    StateCode{"XX001", ErrorCode::data_loss},
    StateCode{"XX002", ErrorCode::data_loss},
};

ErrorCode code_of(std::string_view state) {
  if (state.empty()) return ErrorCode::unavailable;  // the connection, or what makes it
  const auto found =
      std::find_if(kStateCodes.begin(), kStateCodes.end(),
                   [state](const StateCode& known) { return state.starts_with(known.prefix); });
  return found == kStateCodes.end() ? ErrorCode::internal : found->code;
}

/// Whether a statement read this word as a number, as ours do on purpose.
bool is_refusal(std::string_view state, std::string_view message, std::string_view word) {
  return state == "22P02" && message.find("\"" + std::string(word) + "\"") != std::string::npos;
}

}  // namespace

Error postgres_error(std::string_view state, std::string_view message) {
  if (is_refusal(state, message, kFenced)) return fenced_error();
  if (is_refusal(state, message, kWritesMissing)) {
    return {ErrorCode::unavailable,
            "the database has lost what was written last: it failed, or another one took over", ""};
  }
  if (is_refusal(state, message, kRowsMissing)) {
    return {ErrorCode::data_loss, "a task that is to be changed or removed is not in the database",
            ""};
  }
  std::string text(message.substr(0, message.find_last_not_of(" \n") + 1));
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (!state.empty()) text += " (" + std::string(state) + ")";
  return {code_of(state), text.empty() ? "PostgreSQL gave no reason" : text, ""};
}

Error fenced_error() {
  return {ErrorCode::unavailable, "fenced: another server has taken the shard over", ""};
}

}  // namespace detent
