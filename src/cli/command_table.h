// All commands with their options and words, as values: what the manual page and the completions of
// shells are rendered from. Read off the same description of the command line that parses it and
// prints `--help` (arguments.cc), so neither can say anything else.
#pragma once

#include <string>
#include <vector>

namespace detent::cli {

/// An option ("--delay"), or an argument that stands for itself ("QUEUE").
struct OptionEntry {
  std::string name;
  std::string value;               // "DURATION"; empty: a flag, or an argument
  std::string what;                // as --help has it
  std::string otherwise;           // the default, if there is one to tell
  std::string range;               // "1 to 1000", if it has one
  std::string variable;            // of the environment, that stands in for it
  std::vector<std::string> words;  // the only values it takes; empty: others
  bool is_required = false;
  bool is_repeated = false;  // an argument of which there may be several

  bool is_flag() const { return value.empty(); }
  /// The value is a file's or a folder's name.
  bool is_path() const { return value == "FILE" || value == "DIR" || name == "FILE"; }
};

struct CommandEntry {
  std::string name;  // "put"; "next" among those of "cron"; "detent" for all
  std::string what;
  std::vector<OptionEntry> arguments;
  std::vector<OptionEntry> options;  // but for --help
  std::vector<std::string> notes;    // lines said below the options
  std::vector<std::string> examples;
  std::vector<CommandEntry> commands;  // in the order of --help; those that are hidden left out
};

}  // namespace detent::cli
