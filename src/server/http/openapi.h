// The HTTP API as an OpenAPI 3.1 document for programs. The source is openapi.json in this folder;
// the build puts it into the binary. openapi_test.cc compares the server with the document.
#pragma once

#include <string_view>

namespace detent::server {

/// The document, as JSON.
std::string_view openapi_document() noexcept;

}  // namespace detent::server
