#include "cli/man_page.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace detent::cli {

namespace {

constexpr std::string_view kHead =
    R"(.\" The manual page of the program, as `detent man` prints it. Not to be changed by hand.
.TH DETENT 1 "" "Detent" "User Commands"
.SH NAME
detent \- durable delayed tasks, handed out on time
.SH SYNOPSIS
.B detent serve
.RI [ OPTION ]...
.br
.B detent
.IR COMMAND " [" OPTION "]... [" ARGUMENT ]...
.SH DESCRIPTION
.B detent serve
keeps tasks that are due later, in queues, and hands each to a worker when it is due.
A task that was accepted is on disk; it survives a crash and a loss of power.
The other commands speak to such a server over HTTP, but for those that take no
.BR \-\-server .
)";

constexpr std::string_view kExitStatus =
    R"(.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
Failed: the server refused or cannot be reached, a lease is no longer held, a dump is not whole, a
check found something wrong, or a purge was not confirmed.
.TP
.B 2
Wrong usage.
.TP
.B 3
Not found.
)";

/// What roff would take for something else.
std::string escaped(std::string_view text) {
  std::string out;
  if (!text.empty() && (text.front() == '.' || text.front() == '\'')) out = "\\&";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

/// A word between quotes, for a macro: bold and italic in turns.
std::string in_quotes(std::string_view text) { return "\"" + escaped(text) + "\""; }

/// `text` as a sentence on a line of its own.
std::string sentence(std::string text) {
  if (text.empty()) return text;
  const bool is_word = text.size() > 1 && text[1] >= 'a' && text[1] <= 'z';
  if (is_word && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  const bool has_end = text.back() == '.' || text.back() == '?';
  return escaped(text) + (has_end ? "\n" : ".\n");
}

void write_option(const OptionEntry& option, std::string& out) {
  out += ".TP\n";
  if (option.is_flag()) {
    out += ".B " + escaped(option.name) + "\n";
  } else {
    out += ".BI " + in_quotes(option.name + " ") + " " + in_quotes(option.value) + "\n";
  }
  out += sentence(option.what);
  if (!option.range.empty()) out += sentence(option.range);
  if (option.is_required) out += "Required.\n";
  if (!option.otherwise.empty()) out += sentence("default " + option.otherwise);
}

void write_synopsis(const std::string& name, const CommandEntry& command, std::string& out) {
  out += ".TP\n.BI " + in_quotes(name);
  std::string arguments;
  for (const OptionEntry& argument : command.arguments) {
    const std::string word = argument.name + (argument.is_repeated ? "..." : "");
    arguments += argument.is_required ? " " + word : " [" + word + "]";
  }
  out += (arguments.empty() ? "" : " " + in_quotes(arguments)) + "\n" + sentence(command.what);
  for (const OptionEntry& argument : command.arguments) {
    const bool says_more = argument.what.find_first_of(":;,") != std::string::npos;
    if (says_more) out += escaped(argument.name) + ": " + escaped(argument.what) + ".\n";
  }
  for (const std::string& note : command.notes) out += sentence(note);
}

/// Calls `visit` with "cron next" and its entry, for each command that can be typed.
template <class Visit>
void for_each_command(const CommandEntry& program, Visit visit) {
  for (const CommandEntry& command : program.commands) {
    if (command.commands.empty()) visit(command.name, command);
    for (const CommandEntry& part : command.commands) visit(command.name + " " + part.name, part);
  }
}

bool has(const std::vector<OptionEntry>& options, std::string_view name) {
  return std::any_of(options.begin(), options.end(),
                     [name](const OptionEntry& option) { return option.name == name; });
}

/// Those that all commands to a server take are told once.
void write_options(const CommandEntry& program, std::string& out) {
  out += ".SH OPTIONS\n.TP\n.B \\-\\-help\n";
  out += "Print the commands, or the options of a command, with examples.\n";
  for (const OptionEntry& option : program.options) {
    if (option.name == "--version") write_option(option, out);
  }
  out += ".SS Commands to a server\n";
  for (const OptionEntry& option : program.options) {
    if (option.name != "--version") write_option(option, out);
  }
  for_each_command(program, [&](const std::string& name, const CommandEntry& command) {
    const bool asks_server = has(command.options, "--server");
    std::string options;
    for (const OptionEntry& option : command.options) {
      if (!asks_server || !has(program.options, option.name)) write_option(option, options);
    }
    if (!options.empty()) out += ".SS " + name + "\n" + options;
  });
}

/// The options that a variable stands in for, as "serve --data, check --data".
std::map<std::string, std::string> variables_of(const CommandEntry& program) {
  std::map<std::string, std::string> uses;
  const auto add = [&uses](const std::string& before, const OptionEntry& option) {
    if (option.variable.empty()) return;
    std::string& text = uses[option.variable];
    text += (text.empty() ? "" : ", ") + before + option.name;
  };
  for (const OptionEntry& option : program.options) add("", option);
  for_each_command(program, [&add](const std::string& name, const CommandEntry& command) {
    for (const OptionEntry& option : command.options) add(name + " ", option);
  });
  return uses;
}

void write_environment(const CommandEntry& program, std::string& out) {
  out += ".SH ENVIRONMENT\nWhat is taken where the option is not given.\n";
  for (const auto& [variable, options] : variables_of(program)) {
    out += ".TP\n.B " + variable + "\n" + escaped(options) + "\n";
  }
}

void write_examples(const CommandEntry& program, std::string& out) {
  out += ".SH EXAMPLES\n.EX\n";
  for_each_command(program, [&out](const std::string&, const CommandEntry& command) {
    for (const std::string& line : command.examples) out += escaped(line) + "\n";
  });
  out += ".EE\n";
}

}  // namespace

std::string render_man_page(const CommandEntry& program) {
  std::string out(kHead);
  out += ".SH COMMANDS\n";
  for_each_command(program, [&out](const std::string& name, const CommandEntry& command) {
    write_synopsis(name, command, out);
  });
  write_options(program, out);
  write_environment(program, out);
  out += kExitStatus;
  write_examples(program, out);
  return out;
}

}  // namespace detent::cli
