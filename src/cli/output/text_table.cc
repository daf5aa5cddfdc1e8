#include "cli/output/text_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>

#include "base/utf8.h"
#include "detent/check.h"

namespace detent::cli {

namespace {

constexpr std::string_view kEllipsis = "\xE2\x80\xA6";  // U+2026

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};
// Blocks with only wide characters (Unicode's EastAsianWidth.txt), and emoji.
constexpr std::array<Range, 10> kWide{{{0x1100, 0x115F},
                                       {0x2E80, 0x303E},
                                       {0x3041, 0xA4CF},
                                       {0xAC00, 0xD7A3},
                                       {0xF900, 0xFAFF},
                                       {0xFE30, 0xFE6F},
                                       {0xFF00, 0xFF60},
                                       {0xFFE0, 0xFFE6},
                                       {0x1F300, 0x1FAFF},
                                       {0x20000, 0x3FFFD}}};
// Combining marks, joiners, variation selectors.
constexpr std::array<Range, 5> kNoWidth{
    {{0x0300, 0x036F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}}};

template <std::size_t kCount>
bool is_in(const std::array<Range, kCount>& ranges, std::uint32_t code_point) {
  return std::any_of(ranges.begin(), ranges.end(), [code_point](const Range& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

/// Requires: `character` is one valid character in UTF-8.
std::uint32_t code_point_of(std::string_view character) {
  const auto first = static_cast<std::uint8_t>(character.front());
  if (character.size() == 1) return first;
  std::uint32_t value = first & (0x7Fu >> character.size());
  for (const char c : character.substr(1))
    value = value << 6 | (static_cast<std::uint8_t>(c) & 63u);
  return value;
}

struct Step {
  std::size_t bytes;
  std::size_t width;
};
/// The size of the first character of `text`. An invalid byte is one character. Requires: `text` is
/// not empty.
Step first_step(std::string_view text) {
  const std::size_t bytes = utf8_character_size(text);
  if (bytes == 0) return {1, 1};
  const std::uint32_t code_point = code_point_of(text.substr(0, bytes));
  if (is_in(kNoWidth, code_point)) return {bytes, 0};
  return {bytes, is_in(kWide, code_point) ? std::size_t{2} : std::size_t{1}};
}

std::vector<std::size_t> widths_of(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  return widths;
}

}  // namespace

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Step step = first_step(text);
    width += step.width;
    text.remove_prefix(step.bytes);
  }
  return width;
}

std::string cut_to(const std::string& text, std::size_t width) {
  DETENT_CHECK(width > 0);
  if (width_of(text) <= width) return text;
  std::string_view rest = text;
  std::size_t taken = 0;
  while (true) {
    const Step step = first_step(rest);
    if (taken + step.width > width - 1) break;
    taken += step.width;
    rest.remove_prefix(step.bytes);
  }
  return text.substr(0, text.size() - rest.size()).append(kEllipsis);
}

namespace {

void show_lines(std::ostream& out, const std::vector<Row>& rows, std::size_t columns) {
  const std::vector<std::size_t> widths = widths_of(rows);
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] + 2 - width_of(row[i]), ' ');
    }
    out << cut_to(line, columns) << '\n';
  }
}

std::size_t width_of_table(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + 2 * (widths.size() - 1);
}

/// Removes the columns `drops` while the first column of `cuts` would be cut to less than kGood
/// characters. Then `cuts` has the new places of its columns.
void drop_columns(std::vector<Row>& rows, std::size_t columns, std::vector<std::size_t> drops,
                  std::vector<std::size_t>& cuts) {
  constexpr std::size_t kGood = 24;
  for (auto drop = drops.begin(); drop != drops.end(); ++drop) {
    const std::vector<std::size_t> widths = widths_of(rows);
    const std::size_t first = widths[cuts.front()];
    if (width_of_table(widths) - first + std::min(first, kGood) <= columns) return;
    const std::size_t gone = *drop;
    for (Row& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(gone));
    for (std::size_t& cut : cuts) cut -= cut > gone ? 1 : 0;
    for (std::size_t& later : drops) later -= later > gone ? 1 : 0;
  }
}

}  // namespace

void show_table(std::ostream& out, const std::vector<Row>& rows) {
  show_lines(out, rows, std::numeric_limits<std::size_t>::max());
}

void show_table(std::ostream& out, std::vector<Row> rows, std::size_t columns,
                std::initializer_list<std::size_t> cuts, std::initializer_list<std::size_t> drops) {
  constexpr std::size_t kLeast = 8;
  std::vector<std::size_t> places(cuts);
  if (columns > 0) drop_columns(rows, columns, drops, places);
  for (const std::size_t column : places) {
    if (columns == 0) break;
    const std::vector<std::size_t> widths = widths_of(rows);
    if (column >= widths.size()) continue;
    const std::size_t all = width_of_table(widths);
    if (all <= columns) break;
    const std::size_t others = all - widths[column];
    const std::size_t room = columns > others + kLeast ? columns - others : kLeast;
    for (Row& row : rows) {
      if (column < row.size()) row[column] = cut_to(row[column], room);
    }
  }
  show_lines(out, rows, columns > 0 ? columns : std::numeric_limits<std::size_t>::max());
}

}  // namespace detent::cli
