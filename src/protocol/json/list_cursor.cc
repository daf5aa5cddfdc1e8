#include "protocol/json/list_cursor.h"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <system_error>

namespace detent::json {
namespace {

/// The first letter of a cursor, indexed by ListPart.
constexpr std::string_view kLetters = "dle";

template <class Number>
bool take_number(std::string_view& text, Number& number) noexcept {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return error == std::errc{};
}

bool take_dash(std::string_view& text) noexcept {
  if (!text.starts_with('-')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string render_cursor(const ListCursor& cursor) {
  return kLetters[static_cast<std::size_t>(cursor.part)] + std::to_string(cursor.queue) + "-" +
         std::to_string(cursor.at.time_since_epoch().count()) + "-" +
         std::to_string(cursor.id.value);
}

std::optional<ListCursor> parse_cursor(std::string_view text) {
  const std::string_view all = text;
  const std::size_t part = text.empty() ? kLetters.npos : kLetters.find(text.front());
  if (part == kLetters.npos) return std::nullopt;
  text.remove_prefix(1);
  ListCursor cursor{.part = static_cast<ListPart>(part)};
  std::int64_t at = 0;
  const bool is_whole = take_number(text, cursor.queue) && take_dash(text) &&
                        take_number(text, at) && take_dash(text) &&
                        take_number(text, cursor.id.value) && text.empty();
  const bool is_place = at >= 0 && (cursor.queue == 0 || cursor.part == ListPart::dead);
  if (!is_whole || !is_place) return std::nullopt;
  cursor.at = WallTime{std::chrono::milliseconds{at}};
  if (render_cursor(cursor) != all) return std::nullopt;
  return cursor;
}

}  // namespace detent::json
