#include "cli/settings/settings_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "cli/settings/toml_parser.h"

namespace detent::cli {

namespace {

std::string place_of(const std::string& file, const toml::source_region& source) {
  return file + ":" + std::to_string(source.begin.line);
}

Error wrong(const std::string& place, const std::string& what) {
  return Error{ErrorCode::invalid_argument, place + ": " + what, "config"};
}

std::string name_of_type(toml::node_type type) {
  switch (type) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      return "a date or time without quotes";
    case toml::node_type::none:
    case toml::node_type::string:
    case toml::node_type::integer:
    case toml::node_type::boolean:
      break;
  }
  return "of another type";
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(" \t") + 1 - begin));
}

/// Whether `value` is printable text that is no value of TOML, such as 1G or debug.
bool lacks_quotes(std::string_view value) {
  const bool is_plain = std::ranges::all_of(value, [](char c) {
    return c >= ' ' && c <= '~' && std::string_view("\"'\\[]{}").find(c) == std::string_view::npos;
  });
  const bool is_number = value.find_first_not_of("0123456789") == std::string_view::npos;
  return is_plain && !is_number && value != "true" && value != "false";
}

/// The error about the first fault in the text of a file. A common fault is a text without quotes,
/// which TOML takes for a number.
Error first_fault(std::string_view text, const std::string& file, const toml::parse_error& error) {
  constexpr std::string_view kNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
  for (std::size_t line = 1; line < error.source().begin.line; ++line) {
    text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  }
  const std::string_view line = text.substr(0, text.find_first_of("\r\n#"));
  const std::size_t equals = std::min(line.find('='), line.size());
  const std::string name = trimmed(line.substr(0, equals));
  const std::string value = trimmed(line.substr(std::min(equals + 1, line.size())));
  const bool is_setting = !name.empty() && name.find_first_not_of(kNames) == std::string::npos;
  return wrong(place_of(file, error.source()), is_setting && lacks_quotes(value)
                                                   ? put_in_quotes(name, value)
                                                   : std::string(error.description()));
}

Result<FileSetting> read_setting(std::string name, const toml::node& node, std::string place) {
  FileSetting setting{.name = std::move(name), .value = "", .place = std::move(place)};
  if (const auto* text = node.as_string()) {
    setting.value = text->get();
  } else if (const auto* number = node.as_integer()) {
    setting.value = std::to_string(number->get());
    setting.kind = SettingKind::number;
  } else if (const auto* truth = node.as_boolean()) {
    setting.value = truth->get() ? "true" : "false";
    setting.kind = SettingKind::yes_or_no;
  } else {
    return wrong(setting.place, setting.name +
                                    " must be a string in quotes, a whole number, true or false, "
                                    "but it is " +
                                    name_of_type(node.type()));
  }
  return setting;
}

/// Returns nothing if the file does not exist.
Result<std::optional<std::string>> read_text(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file && errno == ENOENT) return std::optional<std::string>{};
  std::string text;
  std::array<char, 16384> part{};
  while (file && text.size() <= kLargestSettingsFile) {
    const std::size_t size = std::fread(part.data(), 1, part.size(), file.get());
    if (size == 0) break;
    text.append(part.data(), size);
  }
  if (!file || std::ferror(file.get()) != 0) {
    return wrong(path, std::string("cannot be read: ") + std::strerror(errno));
  }
  if (text.size() > kLargestSettingsFile) return wrong(path, "must be at most 1 MB");
  return std::optional(std::move(text));
}

}  // namespace

std::string put_in_quotes(const std::string& name, const std::string& value) {
  const bool may_hold_a_password = value.find("://") != std::string::npos;
  return "put text in quotes: " + name + " = \"" + (may_hold_a_password ? "…" : value) + "\"";
}

Result<std::vector<FileSetting>> parse_settings(std::string_view text, const std::string& file) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return first_fault(text, file, parsed.error());
  using Entry = std::pair<std::string_view, const toml::node*>;
  std::vector<Entry> entries;  // sorted by line, so that an error names the first bad line
  for (const auto& [key, node] : parsed.table()) entries.emplace_back(key.str(), &node);
  std::sort(entries.begin(), entries.end(), [](const Entry& left, const Entry& right) {
    return left.second->source().begin.line < right.second->source().begin.line;
  });
  std::vector<FileSetting> settings;
  for (const auto& [name, node] : entries) {
    ASSIGN_OR_RETURN(FileSetting setting,
                     read_setting(std::string(name), *node, place_of(file, node->source())));
    settings.push_back(std::move(setting));
  }
  return settings;
}

Result<std::vector<FileSetting>> read_settings_file(const std::string& path) {
  const bool may_be_missing = path.starts_with('-');
  const std::string file = may_be_missing ? path.substr(1) : path;
  ASSIGN_OR_RETURN(const std::optional<std::string> text, read_text(file));
  if (text) return parse_settings(*text, file);
  if (may_be_missing) return std::vector<FileSetting>{};
  return wrong(file, "the file does not exist");
}

}  // namespace detent::cli
