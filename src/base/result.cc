#include "base/result.h"

namespace detent {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::forbidden:
      return "forbidden";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::conflict:
      return "conflict";
    case ErrorCode::too_large:
      return "too_large";
    case ErrorCode::resource_exhausted:
      return "resource_exhausted";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::data_loss:
      return "data_loss";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";  // only for a value that is not an enumerator
}

Error with_context(std::string_view context, Error error) {
  std::string message;
  message.reserve(context.size() + 2 + error.message.size());
  message.append(context).append(": ").append(error.message);
  error.message = std::move(message);
  return error;
}

}  // namespace detent
