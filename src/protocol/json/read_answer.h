// What a client makes of an answer that cannot be one. For the parsers of answers.
#pragma once

#include <utility>

#include "base/result.h"

namespace detent::json {

/// An error in an answer is not the caller's to fix: it is `internal`, whatever it was.
template <class T>
Result<T> as_answer(Result<T> parsed) {
  if (parsed) return parsed;
  Error error = with_context("read the server's answer", std::move(parsed).error());
  error.code = ErrorCode::internal;
  return error;
}

}  // namespace detent::json
