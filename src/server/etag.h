// Versions of a task as HTTP knows them (RFC 9110, sections 8.8.3 and 13.1.1): who changes a task
// says which version it has seen, and a change by somebody else in between is not overwritten.
#pragma once

#include <string>
#include <string_view>

#include "task/request.h"

namespace detent::server {

/// Of what `GET /v1/tasks/{id}` shows, a strong one: a hash of the task's record, with the rules in
/// force, and its state.
std::string etag_of(const TaskSnapshot& view);

/// Whether an If-Match header, "*" or a list of entity tags, allows a change of this version. A
/// weak tag matches nothing.
bool allows(std::string_view if_match, std::string_view etag) noexcept;

}  // namespace detent::server
