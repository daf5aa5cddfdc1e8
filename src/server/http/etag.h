// HTTP versions of a task (RFC 9110, sections 8.8.3 and 13.1.1). A client that changes a task sends
// the version that it has seen. If another client has changed the task since then, the change is
// refused and overwrites no data.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/message/http_message.h"
#include "task/request.h"

namespace detent::server {

/// The strong entity tag of the answer to `GET /v1/tasks/{id}`: a hash of the task's record, the
/// rules in force, and its state.
std::string etag_of(const TaskSnapshot& view);

/// Returns true if an If-Match header ("*" or a list of entity tags) permits a change of this
/// version. A weak tag never matches.
bool allows(std::string_view if_match, std::string_view etag) noexcept;

/// Returns the If-Match headers of a request as one list, or no value if it has no such header. An
/// empty list differs from no header: it permits no version.
std::optional<std::string> if_match_of(const net::HttpRequest& request);

/// Returns the refusal for a change request with a condition that the server cannot honour: an
/// If-Match without a tag, an If-Match on a resource without versions, an If-None-Match, or an
/// If-Unmodified-Since. `pattern` is the pattern of the route.
std::optional<net::HttpResponse> refuse_conditions(const net::HttpRequest& request,
                                                   std::string_view pattern);

}  // namespace detent::server
