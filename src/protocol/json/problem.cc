#include "protocol/json/problem.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/http_phrase.h"
#include "protocol/json/json_fields.h"

namespace detent::json {

namespace {

constexpr std::string_view kTypePrefix = "urn:detent:error:";

constexpr std::array kCodes{
    ErrorCode::invalid_argument, ErrorCode::forbidden, ErrorCode::not_found,
    ErrorCode::conflict,         ErrorCode::too_large, ErrorCode::resource_exhausted,
    ErrorCode::unavailable,      ErrorCode::data_loss, ErrorCode::internal};

std::string_view title_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "The request is wrong";
    case ErrorCode::forbidden:
      return "Not allowed";
    case ErrorCode::not_found:
      return "Not found";
    case ErrorCode::conflict:
      return "Not possible in this state";
    case ErrorCode::too_large:
      return "Over a limit";
    case ErrorCode::resource_exhausted:
      return "Over a quota or out of space";
    case ErrorCode::unavailable:
      return "Not possible now, try again";
    case ErrorCode::data_loss:
      return "Stored data cannot be read back";
    case ErrorCode::internal:
      return "Internal error";
  }
  return "Error";  // only for a value that is not an enumerator
}

std::optional<ErrorCode> code_of_type(std::string_view type) noexcept {
  if (!type.starts_with(kTypePrefix)) return std::nullopt;
  type.remove_prefix(kTypePrefix.size());
  for (const ErrorCode code : kCodes) {
    if (to_string(code) == type) return code;
  }
  return std::nullopt;
}

std::string string_or_empty(const JsonField& field) {
  return field.is(JsonKind::string) ? unescape(field.value->text) : std::string();
}

Error answered(int status) {
  return {code_of_status(status), "the server answered " + std::to_string(status), ""};
}

/// Without a known status, the problem has it.
Error read_problem(const JsonValue& problem, std::optional<int> known_status) {
  constexpr int kUnknownStatus = 500;
  JsonField status{"status"};
  JsonField type{"type"};
  JsonField detail{"detail"};
  JsonField field{"field"};
  const std::array fields{&status, &type, &detail, &field};
  if (!take_fields(problem, fields, UnknownFields::skip)) {
    return answered(known_status.value_or(kUnknownStatus));
  }
  const Result<std::uint64_t> own = read_integer(status, {.min = 100, .max = 599});
  Error error = answered(known_status.value_or(static_cast<int>(own.value_or(kUnknownStatus))));
  error.code = code_of_type(string_or_empty(type)).value_or(error.code);
  if (std::string told = string_or_empty(detail); !told.empty()) error.message = std::move(told);
  error.field = string_or_empty(field);
  return error;
}

}  // namespace

int http_status(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return 400;
    case ErrorCode::forbidden:
      return 403;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::conflict:
      return 409;
    case ErrorCode::too_large:
      return 413;
    case ErrorCode::resource_exhausted:
      return 429;
    case ErrorCode::unavailable:
      return 503;
    case ErrorCode::data_loss:
    case ErrorCode::internal:
      return 500;
  }
  return 500;  // only for a value that is not an enumerator
}

ErrorCode code_of_status(int status) noexcept {
  for (const ErrorCode code : kCodes) {
    if (http_status(code) == status && code != ErrorCode::data_loss) return code;
  }
  if (status == 401) return ErrorCode::forbidden;
  if (status == 408 || status == 502 || status == 504) return ErrorCode::unavailable;
  if (status == 431) return ErrorCode::too_large;
  return status >= 400 && status < 500 ? ErrorCode::invalid_argument : ErrorCode::internal;
}

std::string render_problem(const Error& error) {
  std::string body;
  JsonWriter writer(body);
  write_problem(writer, error);
  return body;
}

void write_problem(JsonWriter& writer, const Error& error) {
  std::string type(kTypePrefix);
  type.append(to_string(error.code));
  writer.begin_object();
  writer.name("type").string(type);
  writer.name("title").string(title_of(error.code));
  writer.name("status").number(http_status(error.code));
  writer.name("detail").string(error.message);
  if (!error.field.empty()) writer.name("field").string(error.field);
  writer.end_object();
}

std::string_view lease_status_of(const Error& error) noexcept {
  return error.code == ErrorCode::unavailable ? "unavailable" : "error";
}

std::string render_lease_error(const Error& error, std::string_view problem) {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  writer.name("status").string(lease_status_of(error));
  writer.name("error").raw(problem);
  writer.end_object();
  return text;
}

std::string render_http_problem(int status, std::string_view detail) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  writer.name("type").string("about:blank");
  const std::string_view phrase = http_phrase(status);
  writer.name("title").string(phrase.empty() ? "Error" : phrase);
  writer.name("status").number(status);
  writer.name("detail").string(detail);
  writer.end_object();
  return body;
}

Error parse_problem(int status, std::string_view body) {
  JsonDocument document;
  const Result<const JsonValue*> problem = document.read(body);
  return problem ? read_problem(**problem, status) : answered(status);
}

Error parse_problem(const JsonValue& problem) { return read_problem(problem, std::nullopt); }

}  // namespace detent::json
