#include "base/log/redact.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace detent {

namespace {

constexpr std::string_view kMask = "***";

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? char(letter - 'A' + 'a') : letter;
}

bool begins_with(std::string_view text, std::string_view lower_case) {
  return text.size() >= lower_case.size() &&
         std::equal(lower_case.begin(), lower_case.end(), text.begin(),
                    [](char expected, char letter) { return expected == lower(letter); });
}

/// The size of the secret at the start of `text`. The secret ends at white space, a quote or other
/// punctuation.
std::size_t word_size(std::string_view text) {
  return std::min(text.find_first_of(" \t\r\n\"'<>,;"), text.size());
}

/// The size of "user:password@" at the start of `text`, which follows "://". 0 if there is no "@".
std::size_t user_size(std::string_view text) {
  const std::string_view authority =
      text.substr(0, std::min(word_size(text), text.find_first_of("/?#")));
  const std::size_t at = authority.rfind('@');
  return at == std::string_view::npos ? 0 : at + 1;
}

/// Texts, in lower case, that come before a secret. They are kept, and the following word is
/// masked.
constexpr std::array<std::string_view, 2> kHeads{"bearer ", "whsec_"};

}  // namespace

std::string redact(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  const auto keep = [&](std::size_t size) {
    clean.append(text.substr(0, size));
    text.remove_prefix(size);
  };
  const auto mask = [&](std::size_t size, std::string_view with) {
    clean.append(with);
    text.remove_prefix(size);
  };
  while (!text.empty()) {
    if (text.starts_with("://")) {
      keep(3);
      if (const std::size_t size = user_size(text); size > 0) mask(size, "***@");
      continue;
    }
    const auto* const head =
        std::find_if(kHeads.begin(), kHeads.end(),
                     [text](std::string_view one) { return begins_with(text, one); });
    if (head == kHeads.end()) {
      keep(1);
      continue;
    }
    keep(head->size());
    // No secret follows in a text such as "a key must be whsec_ and base64".
    if (const std::size_t size = word_size(text); size > 0) mask(size, kMask);
  }
  return clean;
}

}  // namespace detent
