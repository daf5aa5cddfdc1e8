// Versions of a task as HTTP knows them (RFC 9110, sections 8.8.3 and 13.1.1): who changes a task
// says which version it has seen, and a change by somebody else in between is not overwritten.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/http_message.h"
#include "task/request.h"

namespace detent::server {

/// Of what `GET /v1/tasks/{id}` shows, a strong one: a hash of the task's record, with the rules in
/// force, and its state.
std::string etag_of(const TaskSnapshot& view);

/// Whether an If-Match header, "*" or a list of entity tags, allows a change of this version. A
/// weak tag matches nothing.
bool allows(std::string_view if_match, std::string_view etag) noexcept;

/// The If-Match headers of a request as one list; nothing when it has none. An empty list is not
/// the same as none: it allows no version.
std::optional<std::string> if_match_of(const net::HttpRequest& request);

/// What a request to change something is answered when it carries a condition that would not be
/// kept: an If-Match without a tag or where nothing has versions, an If-None-Match, an
/// If-Unmodified-Since. `pattern` is that of its route.
std::optional<net::HttpResponse> refuse_conditions(const net::HttpRequest& request,
                                                   std::string_view pattern);

}  // namespace detent::server
