#include "net/message/http_query.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace detent::net {
namespace {

/// The longest name of an unknown parameter that an error repeats.
constexpr std::size_t kMaxToldNameBytes = 100;

Error invalid(std::string message, std::string_view field) {
  return {ErrorCode::invalid_argument, std::move(message),
          std::string(field.substr(0, kMaxToldNameBytes))};
}

std::optional<unsigned> hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

Result<void> take_parameter(std::string_view text, std::span<QueryParameter* const> parameters) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::optional<std::string> name = percent_decode(text.substr(0, equals));
  std::optional<std::string> value = percent_decode(text.substr(std::min(equals + 1, text.size())));
  if (!name || !value)
    return invalid("a % in the query must be followed by two hexadecimal digits", "");
  const auto found =
      std::find_if(parameters.begin(), parameters.end(),
                   [&name](const QueryParameter* parameter) { return parameter->name == *name; });
  if (found == parameters.end()) return invalid("unknown query parameter", *name);
  if ((*found)->value) return invalid("the parameter is given twice", *name);
  (*found)->value = *std::move(value);
  return ok();
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const auto high = hex_digit(text[i + 1]);
    const auto low = hex_digit(text[i + 2]);
    if (!high || !low) return std::nullopt;
    decoded.push_back(static_cast<char>(*high << 4 | *low));
    i += 2;
  }
  return decoded;
}

Result<void> take_query(std::string_view target, std::span<QueryParameter* const> parameters) {
  const std::size_t mark = target.find('?');
  std::string_view rest = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    if (end > 0) TRY(take_parameter(rest.substr(0, end), parameters));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return ok();
}

Result<std::uint64_t> read_count(const QueryParameter& parameter, std::uint64_t most,
                                 std::uint64_t other, Zero zero) {
  if (!parameter.value) return other;
  const std::uint64_t least = zero == Zero::allowed ? 0 : 1;
  std::uint64_t count = 0;
  const char* const begin = parameter.value->data();
  const char* const end = begin + parameter.value->size();
  const auto [stop, error] = std::from_chars(begin, end, count);
  if (error == std::errc{} && stop == end && count >= least && count <= most) return count;
  return invalid(std::string(parameter.name) + " must be an integer from " + std::to_string(least) +
                     " to " + std::to_string(most),
                 parameter.name);
}

}  // namespace detent::net
