// What answers have in common: what a client makes of one that cannot be one, and how lists go on.
// For the parsers of answers.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "protocol/json/json_fields.h"

namespace detent::json {

/// An error in an answer is not the caller's to fix: it is `internal`, whatever it was.
template <class T>
Result<T> as_answer(Result<T> parsed) {
  if (parsed) return parsed;
  Error error = with_context("read the server's answer", std::move(parsed).error());
  error.code = ErrorCode::internal;
  return error;
}

/// The member `cursor` of a list: where it goes on, "" when it is over.
inline Result<std::string> read_cursor(std::string_view json) {
  JsonField cursor{"cursor"};
  const std::array<JsonField*, 1> fields{&cursor};
  TRY(take_fields(json, fields, UnknownFields::skip));
  if (cursor.is(JsonKind::null)) return std::string();
  return read_string(cursor);
}

}  // namespace detent::json
