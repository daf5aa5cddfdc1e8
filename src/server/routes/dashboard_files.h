// The files of dashboard/, which are part of the binary. cmake/DetentDashboard.cmake generates the
// source.
#pragma once

#include <string_view>

namespace detent::server {

/// A file as the server sends it. All views are valid for the lifetime of the program.
struct DashboardFile {
  std::string_view name;  // "app.js"; the page itself is "index.html"
  std::string_view content_type;
  std::string_view etag;  // of the plain body, in quotes; changes with the content
  std::string_view plain;
  std::string_view gzip;  // the same, compressed
};

/// Returns null if no file has this name. Logarithmic in the number of files.
const DashboardFile* find_dashboard_file(std::string_view name) noexcept;

}  // namespace detent::server
