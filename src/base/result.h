// Result<T> holds a value, or an Error that tells the caller how to react.
//
// Failures of the environment (a disk, a peer, bad input) are returned as values. Exceptions do not
// leave a folder, and bugs stop the process (detent/check.h). Only this file includes
// <tl/expected.hpp>, so std::expected can replace it in one place once all supported compilers have
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace detent {

/// How the caller can react. It does not name the library that failed.
enum class ErrorCode : std::uint8_t {
  invalid_argument,    // the request is wrong: fix it
  forbidden,           // the access token, or its absence, does not allow this: ask for a token
  not_found,           // the named thing does not exist, or no longer exists
  conflict,            // it exists in a state that forbids this: read it again
  too_large,           // over a limit that the message names
  resource_exhausted,  // over a quota or out of space: a later call may succeed
  unavailable,         // not possible now: repeat the call
  data_loss,           // stored data cannot be read
  internal,            // a bug or an unexpected failure of the system
};

std::string_view to_string(ErrorCode code) noexcept;

/// A code for programs and a message for people. For bad input, also the field that was wrong (""
/// if the error is not about a single field).
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string field;

  friend bool operator==(const Error&, const Error&) = default;
};

/// Returns the error with `context` before its message: "open store: permission denied".
Error with_context(std::string_view context, Error error);

/// Holds a T or an Error. The compiler warns if a Result is ignored, and warnings are errors here.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  // NOLINTNEXTLINE(google-explicit-constructor): `return Error{…}` reads well
  Result(Error error) : tl::expected<T, Error>(tl::unexpect, std::move(error)) {}
};

/// For functions that return Result<void>: `return ok();`
inline Result<void> ok() { return {}; }

}  // namespace detent

#define DETENT_CONCAT_INNER(a, b) a##b
#define DETENT_CONCAT(a, b) DETENT_CONCAT_INNER(a, b)

/// Returns from the enclosing function if `expression`, a Result, has an error.
#define TRY(expression)                                      \
  do {                                                       \
    if (auto try_result = (expression); !try_result) {       \
      return ::detent::Error(std::move(try_result).error()); \
    }                                                        \
  } while (false)

/// Returns from the enclosing function if `expression` has an error. Otherwise initialises
/// `declaration` with its value: `ASSIGN_OR_RETURN(auto page, store.load(…));`
#define ASSIGN_OR_RETURN(declaration, expression) \
  DETENT_ASSIGN_OR_RETURN_INNER(DETENT_CONCAT(detent_result_, __LINE__), declaration, expression)
#define DETENT_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                          \
  if (!result) return ::detent::Error(std::move(result).error());      \
  declaration = *std::move(result)
