// What the HTTP API is, for programs: an OpenAPI 3.1 document. openapi.json beside is its source,
// which the build puts into the binary; openapi_test.cc holds the server to it.
#pragma once

#include <string_view>

namespace detent::server {

/// The document, as JSON.
std::string_view openapi_document() noexcept;

}  // namespace detent::server
