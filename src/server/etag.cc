#include "server/etag.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/fnv.h"
#include "store/record_format.h"

namespace detent::server {

std::string etag_of(const TaskSnapshot& view) {
  std::string record = encode_record(view.task);
  record.append(to_string(view.state));
  // Versions of one task differ by chance once in 2^64.
  std::array<char, 16> digits{};
  const auto written =
      std::to_chars(digits.data(), digits.data() + digits.size(), fnv1a(record), 16);
  return '"' + std::string(digits.data(), written.ptr) + '"';
}

bool allows(std::string_view if_match, std::string_view etag) noexcept {
  while (!if_match.empty()) {
    const std::size_t comma = std::min(if_match.find(','), if_match.size());
    std::string_view tag = if_match.substr(0, comma);
    if_match.remove_prefix(std::min(comma + 1, if_match.size()));
    tag.remove_prefix(std::min(tag.find_first_not_of(" \t"), tag.size()));
    tag = tag.substr(0, tag.find_last_not_of(" \t") + 1);
    if (tag == "*" || tag == etag) return true;
  }
  return false;
}

}  // namespace detent::server
