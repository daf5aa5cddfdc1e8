#include "net/http_server/route_table.h"

#include "net/message/http_query.h"

namespace detent::net {
namespace {

/// Removes the first segment from a path that begins with a slash, and returns it.
std::string_view take_segment(std::string_view& path) noexcept {
  path.remove_prefix(1);
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

}  // namespace

std::optional<std::vector<std::string>> match_path(std::string_view pattern,
                                                   std::string_view path) {
  // Fast check: most patterns already differ from the path before their first parameter.
  if (!path.starts_with(pattern.substr(0, pattern.find('{')))) return std::nullopt;
  std::vector<std::string> parameters;
  while (!pattern.empty() && !path.empty()) {
    if (path.front() != '/') return std::nullopt;
    const std::string_view expected = take_segment(pattern);
    const std::string_view segment = take_segment(path);
    if (expected.starts_with('{')) {
      std::optional<std::string> value = percent_decode(segment);
      if (!value || value->empty()) return std::nullopt;
      parameters.push_back(*std::move(value));
    } else if (expected != segment) {
      return std::nullopt;
    }
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return parameters;
}

}  // namespace detent::net
