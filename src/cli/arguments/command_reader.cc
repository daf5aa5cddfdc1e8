#include "cli/arguments/command_reader.h"

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace detent::cli {

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in{std::string(text)};
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

/// Reads the name, the range and the words of a value. CLI11 writes the range behind the name:
/// "N:1 to 1000".
void read_value(const std::string& type, OptionEntry& entry) {
  constexpr std::string_view kNumber = "N:";
  entry.value = type;
  if (type.starts_with(kNumber)) {
    entry.value = "N";
    entry.range = type.substr(kNumber.size());
  }
  if (entry.value.find('|') != std::string::npos) entry.words = split(entry.value, '|');
}

OptionEntry read_option(const CLI::Option& option, const std::string& group) {
  OptionEntry entry{
      .name = option.get_positional() ? option.get_name(true) : "--" + option.get_lnames().front(),
      .what = option.get_description(),
      .otherwise = option.get_default_str(),
      .variable = option.get_envname(),
      .group = group.empty() ? option.get_group() : group,
      .is_required = option.get_required(),
      .is_repeated = option.get_items_expected_max() > 1};
  if (option.get_items_expected_max() > 0) read_value(option.get_type_name(), entry);
  if (option.get_positional()) entry.value.clear();
  return entry;
}

/// Reads the options of a command. An option group is a subcommand without a name in CLI11, so its
/// options are read, too. Its description becomes their `group`.
void read_options(const CLI::App& app, const std::string& group, CommandEntry& entry) {
  for (const CLI::App* part : app.get_subcommands({})) {
    if (part->get_name().empty()) read_options(*part, part->get_description(), entry);
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || option == app.get_help_ptr()) continue;
    (option->get_positional() ? entry.arguments : entry.options)
        .push_back(read_option(*option, group));
  }
}

/// Splits the text below the options: indented lines are examples, other lines are notes.
void read_footer(const std::string& footer, CommandEntry& entry) {
  for (const std::string& line : split(footer, '\n')) {
    if (line.starts_with("  ")) {
      entry.examples.push_back(line.substr(2));
    } else if (!line.empty() && line != "Example:" && line != "Examples:") {
      entry.notes.push_back(line);
    }
  }
}

}  // namespace

CommandEntry read_commands(const CLI::App& app) {
  CommandEntry entry{
      .name = app.get_name(), .what = app.get_description(), .group = app.get_group()};
  if (entry.group == "Subcommands") entry.group = "Commands";
  read_options(app, "", entry);
  read_footer(app.get_footer(), entry);
  for (const CLI::App* part : app.get_subcommands({})) {
    const bool is_shown = !part->get_name().empty() && !part->get_group().empty();
    if (is_shown) entry.commands.push_back(read_commands(*part));
  }
  return entry;
}

}  // namespace detent::cli
