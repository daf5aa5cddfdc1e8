#include "cli/output/suggestion.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace detent::cli {

namespace {

std::size_t edits_between(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < right.size(); ++j) {
      const std::size_t replaced = corner + (left[i] == right[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, corner + 1});
    }
  }
  return row.back();
}

std::string_view without_hyphens(std::string_view word) {
  const std::size_t begin = word.find_first_not_of('-');
  return begin == std::string_view::npos ? std::string_view() : word.substr(begin);
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known) {
  const std::string_view typed = without_hyphens(word);
  std::optional<std::string> found;
  std::size_t fewest = typed.size() / 2 + 1;
  for (const std::string& each : known) {
    const std::size_t edits = edits_between(typed, without_hyphens(each));
    if (edits >= fewest) continue;
    fewest = edits;
    found = each;
  }
  return found;
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  const std::optional<std::string> meant = nearest(word, known);
  return meant ? "; did you mean '" + *meant + "'?" : "";
}

}  // namespace detent::cli
