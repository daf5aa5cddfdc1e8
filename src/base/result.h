// Result<T>: a value, or an Error that says what the caller can do about it.
//
// Failures of the world (a disk, a peer, bad input) travel as values; exceptions do not cross a
// folder, and bugs stop the process (detent/check.h). This is the only file that includes
// <tl/expected.hpp>: std::expected replaces it once every compiler we use has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace detent {

/// Says how the caller can react, not which library failed.
enum class ErrorCode : std::uint8_t {
  invalid_argument,  // the request is wrong; fix it
  forbidden,  // the token, or the missing token, does not allow it; ask the person who gives out
              // tokens
  not_found,  // the thing named does not exist (any more)
  conflict,   // it exists in a state that forbids this; read it again
  too_large,  // over a limit that is stated in the message
  resource_exhausted,  // over a quota or out of space; later may succeed
  unavailable,         // cannot now; retry
  data_loss,           // stored data cannot be read
  internal,            // a bug or an unexpected failure of the system
};

std::string_view to_string(ErrorCode code) noexcept;

/// A code for programs, a message for people, and, for bad input, the field that was wrong
/// ("" when no single field was).
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string field;

  friend bool operator==(const Error&, const Error&) = default;
};

/// The same error with context in front: "open store: permission denied".
Error with_context(std::string_view context, Error error);

/// Holds a T or an Error. A dropped Result is a compiler warning, so an error.
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

/// Returns the error of a Result<…> from the enclosing function; otherwise goes on.
#define TRY(expression)                                      \
  do {                                                       \
    if (auto try_result = (expression); !try_result) {       \
      return ::detent::Error(std::move(try_result).error()); \
    }                                                        \
  } while (false)

/// `ASSIGN_OR_RETURN(auto page, store.load(…));`
#define ASSIGN_OR_RETURN(declaration, expression) \
  DETENT_ASSIGN_OR_RETURN_INNER(DETENT_CONCAT(detent_result_, __LINE__), declaration, expression)
#define DETENT_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                          \
  if (!result) return ::detent::Error(std::move(result).error());      \
  declaration = *std::move(result)
