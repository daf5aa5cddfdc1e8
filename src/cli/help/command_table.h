// A table of all commands with their options. The help, the manual page and the completion scripts
// of shells are rendered from it.
//
// The table comes from the same description (arguments.cc) that parses the command line, so they
// always agree.
#pragma once

#include <string>
#include <vector>

namespace detent::cli {

/// An option such as "--delay", or a positional argument such as "QUEUE".
struct OptionEntry {
  std::string name;
  std::string value;               // "DURATION"; empty: a flag, or an argument
  std::string what;                // the description in --help
  std::string otherwise;           // the default, if --help shows one
  std::string range;               // "1 to 1000", if the value has a range
  std::string variable;            // environment variable that sets the option
  std::string group = "Options";   // heading in --help
  std::vector<std::string> words;  // the allowed values; empty: not a fixed set
  bool is_required = false;
  bool is_repeated = false;  // can be given several times

  bool is_flag() const { return value.empty(); }
  /// Whether the value is the name of a file or a folder.
  bool is_path() const { return value == "FILE" || is_folder() || name == "FILE"; }
  bool is_folder() const { return value == "DIR" || name == "DIR"; }
};

struct CommandEntry {
  std::string name;  // "put"; "next" below "cron"; "detent" for the program
  std::string what;
  std::string group = "Commands";  // heading in --help
  std::vector<OptionEntry> arguments;
  std::vector<OptionEntry> options;  // without --help
  std::vector<std::string> notes;    // lines below the options
  std::vector<std::string> examples;
  std::vector<CommandEntry> commands;  // in the order of --help, without hidden commands
};

}  // namespace detent::cli
