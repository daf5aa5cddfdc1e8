// Errors as JSON bodies: application/problem+json (RFC 9457).
//
// `type` is the kind of the error, for programs ("urn:detent:error:conflict"). `detail` explains
// the error to people. `field` is the part of the request that caused the error, if there is one.
// In the answer to a batch, the same object describes an element that failed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "protocol/json/json_reader.h"
#include "protocol/json/json_writer.h"

namespace detent::json {

inline constexpr std::string_view kProblemContentType = "application/problem+json";

int http_status(ErrorCode code) noexcept;
/// The error code for an answer of which only the HTTP status is known.
ErrorCode code_of_status(int status) noexcept;

std::string render_problem(const Error& error);
void write_problem(JsonWriter& writer, const Error& error);

/// The status of a lease in an answer about several leases. It is `unavailable` if the server does
/// not know whether the call took effect: the lease may still be held, and the client should repeat
/// the call. It is `error` if repeating does not help.
std::string_view lease_status_of(const Error& error) noexcept;
/// `{"status":…,"error":…}`. `problem` is the error as JSON.
std::string render_lease_error(const Error& error, std::string_view problem);

/// For refusals of the HTTP layer that have no Error: an unknown path (404), a wrong method (405),
/// bad framing (400). The title is the standard phrase of the status.
std::string render_http_problem(int status, std::string_view detail);

/// The error of an answer with this status. Reads it from the body if the body is a problem of
/// Detent. For any other body, such as the page of a proxy, the status alone decides.
Error parse_problem(int status, std::string_view body);
/// The error of a problem inside an answer, for example in one result of a batch. Uses the
/// problem's own `status`. A problem without a status counts as 500.
Error parse_problem(const JsonValue& problem);

}  // namespace detent::json
