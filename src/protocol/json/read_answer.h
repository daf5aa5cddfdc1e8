// Helpers for all parsers of answers: the error of an unreadable answer, and the cursor of lists.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "protocol/json/json_fields.h"

namespace detent::json {

/// Turns any error of parsing into `internal`, because the caller cannot fix an answer of the
/// server.
template <class T>
Result<T> as_answer(Result<T> parsed) {
  if (parsed) return parsed;
  Error error = with_context("read the server's answer", std::move(parsed).error());
  error.code = ErrorCode::internal;
  return error;
}

/// Reads the member `cursor` of a list: the start of the next page, or "" on the last page.
inline Result<std::string> read_cursor(std::string_view json) {
  JsonField cursor{"cursor"};
  const std::array<JsonField*, 1> fields{&cursor};
  TRY(take_fields(json, fields, UnknownFields::skip));
  if (cursor.is(JsonKind::null)) return std::string();
  return read_string(cursor);
}

}  // namespace detent::json
