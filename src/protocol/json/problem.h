// Errors as bodies: application/problem+json (RFC 9457).
//
// `type` names the kind of the error for programs ("urn:detent:error:conflict"), `detail` says what
// is wrong for people, `field` which part of the request, when one was. The same object stands for
// an element that failed in the answer to a batch.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "protocol/json/json_writer.h"

namespace detent::json {

inline constexpr std::string_view kProblemContentType = "application/problem+json";

int http_status(ErrorCode code) noexcept;
/// The error that a status alone says.
ErrorCode code_of_status(int status) noexcept;

std::string render_problem(const Error& error);
void write_problem(JsonWriter& writer, const Error& error);

/// The status of a lease in the answer to a call for many: `unavailable` when it is not known
/// whether the verb was carried out, so the lease may still be held and the call should be
/// repeated; `error` when repeating does not help.
std::string_view lease_status_of(const Error& error) noexcept;
/// `{"status":…,"error":…}`. `problem` is the error as JSON.
std::string render_lease_error(const Error& error, std::string_view problem);

/// For what HTTP itself refuses and no Error describes: an unknown path (404), a wrong method
/// (405), bad framing (400). The title is the status's phrase.
std::string render_http_problem(int status, std::string_view detail);

/// The error that an answer of this status says. The body counts where it is a problem of ours, the
/// status alone where it is not (a proxy's page, nothing at all).
Error parse_problem(int status, std::string_view body);
/// The error that a problem inside an answer says, for example in a result of a batch. The
/// problem's own `status` stands for the answer's; a problem without one is a 500.
Error parse_problem(std::string_view problem);

}  // namespace detent::json
