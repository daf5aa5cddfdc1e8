#include "cli/help/help_text.h"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace detent::cli {

namespace {

constexpr std::size_t kWidth = 80;
/// The text of an entry begins at this column at the latest. Longer names have their own line.
constexpr std::size_t kLastColumn = 28;

/// One line of a list: a name, and the text beside it.
struct Item {
  std::string name;
  std::string text;
};
struct Section {
  std::string heading;
  std::vector<Item> items;
};

/// The section with this heading. It is created at the end if it does not exist.
Section& section_of(std::vector<Section>& sections, const std::string& heading) {
  const auto found = std::ranges::find(sections, heading, &Section::heading);
  return found != sections.end() ? *found : sections.emplace_back(Section{heading, {}});
}

/// "Number of tasks (1 to 1000, default 1)".
std::string text_of(const OptionEntry& option) {
  std::vector<std::string> facts;
  if (option.is_required && option.name.starts_with('-')) facts.emplace_back("required");
  if (!option.range.empty()) facts.push_back(option.range);
  if (!option.otherwise.empty()) facts.push_back("default " + option.otherwise);
  if (!option.variable.empty()) facts.push_back("or " + option.variable);
  std::string text;
  for (const std::string& fact : facts) text += (text.empty() ? " (" : ", ") + fact;
  return option.what + (text.empty() ? "" : text + ")");
}

std::vector<Section> sections_of(const CommandEntry& command) {
  std::vector<Section> sections;
  for (const CommandEntry& part : command.commands) {
    section_of(sections, part.group).items.push_back({part.name, part.what});
  }
  for (const OptionEntry& argument : command.arguments) {
    section_of(sections, "Arguments").items.push_back({argument.name, text_of(argument)});
  }
  for (const OptionEntry& option : command.options) {
    const std::string value = option.is_flag() ? "" : " " + option.value;
    section_of(sections, option.group).items.push_back({option.name + value, text_of(option)});
  }
  section_of(sections, "Options").items.push_back({"--help", "Print this help"});
  std::stable_partition(sections.begin(), sections.end(),
                        [](const Section& section) { return section.heading != kServerOptions; });
  return sections;
}

/// Appends the words of `text`, which begins at column `at`. Further lines begin at `indent`.
void wrap(const std::string& text, std::size_t at, std::size_t indent, std::string& out) {
  std::istringstream words(text);
  bool is_first = true;
  for (std::string word; words >> word; is_first = false) {
    if (!is_first && at + 1 + word.size() > kWidth) {
      out.append("\n").append(indent, ' ');
      at = indent;
    } else if (!is_first) {
      out.push_back(' ');
      ++at;
    }
    out += word;
    at += word.size();
  }
  out.push_back('\n');
}

void write_item(const Item& item, std::size_t column, std::string& out) {
  out.append("  ").append(item.name);
  std::size_t at = 2 + item.name.size();
  if (at + 2 > column) {
    out.push_back('\n');
    at = 0;
  }
  out.append(column - at, ' ');
  wrap(item.text, column, column, out);
}

}  // namespace

std::string arguments_of(const CommandEntry& command) {
  std::string text;
  for (const OptionEntry& argument : command.arguments) {
    const std::string word = argument.name + (argument.is_repeated ? "..." : "");
    text += (text.empty() ? "" : " ") + (argument.is_required ? word : "[" + word + "]");
  }
  return text;
}

std::string render_help(const CommandEntry& command, const std::string& name) {
  std::string out;
  wrap(command.what + (command.what.ends_with('.') ? "" : "."), 0, 0, out);
  const std::string arguments = arguments_of(command);
  out += "\nUsage: " + name + (command.commands.empty() ? "" : " COMMAND") +
         (arguments.empty() ? "" : " " + arguments) + " [OPTIONS]\n";
  const std::vector<Section> sections = sections_of(command);
  std::size_t column = 0;
  for (const Section& section : sections) {
    for (const Item& item : section.items) {
      const std::size_t needed = 2 + item.name.size() + 2;
      if (needed <= kLastColumn) column = std::max(column, needed);
    }
  }
  for (const Section& section : sections) {
    out += "\n" + section.heading + ":\n";
    for (const Item& item : section.items) write_item(item, column, out);
  }
  if (!command.notes.empty()) out += "\n";
  for (const std::string& note : command.notes) wrap(note, 0, 0, out);
  if (!command.examples.empty()) {
    out += command.examples.size() == 1 ? "\nExample:\n" : "\nExamples:\n";
  }
  for (const std::string& example : command.examples) out += "  " + example + "\n";
  return out;
}

}  // namespace detent::cli
