#include "net/http_message.h"

#include <algorithm>

namespace detent::net {
namespace {

std::string_view find_header(const HttpHeaders& headers, std::string_view name) noexcept {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [name](const auto& header) { return header.first == name; });
  return found == headers.end() ? std::string_view{} : std::string_view{found->second};
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const noexcept {
  return find_header(headers, name);
}

std::string_view HttpResponse::header(std::string_view name) const noexcept {
  return find_header(headers, name);
}

}  // namespace detent::net
