#include "net/message/http_message.h"

#include <algorithm>

namespace detent::net {
namespace {

std::string_view find_header(const HttpHeaders& headers, std::string_view name) noexcept {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [name](const auto& header) { return header.first == name; });
  return found == headers.end() ? std::string_view{} : std::string_view{found->second};
}

}  // namespace

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() && to_lower(text) == lower;
}

std::string_view HttpRequest::header(std::string_view name) const noexcept {
  return find_header(headers, name);
}

std::string_view HttpResponse::header(std::string_view name) const noexcept {
  return find_header(headers, name);
}

}  // namespace detent::net
