#include "cli/settings/settings.h"

#include <array>
#include <cstdio>
#include <string_view>

#include "base/utf8.h"

namespace detent::cli {

namespace {

/// Whether `value` is an address with a user or password, such as "redis://user:password@host".
bool has_password(std::string_view value) {
  const std::size_t scheme = value.find("://");
  if (scheme == std::string_view::npos) return false;
  const std::string_view authority = value.substr(scheme + 3, value.find('/', scheme + 3));
  return authority.find('@') != std::string_view::npos;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = utf8_character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

/// The inside of a basic string of TOML.
std::string escaped(std::string_view value) {
  std::string text;
  for (const char byte : value) {
    if (byte == '"' || byte == '\\') {
      text.append(1, '\\').append(1, byte);
    } else if (const auto code = static_cast<unsigned char>(byte); code < 0x20 || code == 0x7F) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04X", static_cast<unsigned>(code));
      text.append(escape.data());
    } else {
      text.append(1, byte);
    }
  }
  return text;
}

std::string line_of(const Setting& setting) {
  if (has_password(setting.value)) return "# " + setting.name + " holds a password: not shown";
  if (!is_utf8(setting.value)) return "# " + setting.name + " is not UTF-8: not shown";
  if (setting.value.empty()) return "# " + setting.name + " is not set";
  const bool is_text = setting.kind == SettingKind::text;
  return setting.name + " = " + (is_text ? "\"" + escaped(setting.value) + "\"" : setting.value);
}

}  // namespace

std::string to_toml(const std::vector<Setting>& settings) {
  constexpr std::size_t kColumn = 36;  // where comments begin, unless the line is longer
  std::string text;
  for (const Setting& setting : settings) {
    std::string line = line_of(setting);
    if (line.size() < kColumn) line.resize(kColumn, ' ');
    // The name of a file can have any bytes, but a comment must be one line of UTF-8.
    text += line + "  # " + (is_utf8(setting.from) ? escaped(setting.from) : "file") + "\n";
  }
  return text;
}

}  // namespace detent::cli
