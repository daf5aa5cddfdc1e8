// Helpers that declare options with CLI11. arguments.cc and the *_arguments.cc files describe the
// command line with them. Only these files, setting_sources.h and command_reader.h use CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/arguments/argument_values.h"
#include "cli/arguments/arguments.h"

namespace detent::cli {

/// The text of an error about the value `text` of an option: the message and the value. An address
/// is left out, because it may contain a password.
std::string refusal(const Error& error, const std::string& text);

/// Adds an option whose value `parse` reads. If `parse` fails, CLI11 reports the error with the
/// name of the option. Else `take` gets the value.
template <class T, class Take>
CLI::Option* add_parsed(CLI::App& app, const std::string& name,
                        Result<T> (*parse)(const std::string&), Take take) {
  CLI::Option* option =
      app.add_option_function<std::string>(name, [parse, take](const std::string& text) {
        take(*parse(text));  // the check below has accepted it
      });
  return option->check(
      [parse](const std::string& text) {
        const Result<T> value = parse(text);
        return value ? std::string() : refusal(value.error(), text);
      },
      "");
}

CLI::Option* add_duration(CLI::App& app, const std::string& name,
                          std::chrono::milliseconds& duration);
CLI::Option* add_duration(CLI::App& app, const std::string& name,
                          std::optional<std::chrono::milliseconds>& duration);

/// The number of words of an enum, whose values count from 0.
template <class Enum>
inline constexpr std::size_t kCount = 0;

/// The words of an enum, joined by `between`.
template <class Enum>
std::string all_words(const char* between) {
  std::string words;
  for (std::size_t i = 0; i < kCount<Enum>; ++i) {
    words += (words.empty() ? "" : between) + std::string(to_string(static_cast<Enum>(i)));
  }
  return words;
}

/// Reads the word of an enumerator. The error lists the allowed words.
template <class Enum>
Result<Enum> parse_word(const std::string& text) {
  for (std::size_t i = 0; i < kCount<Enum>; ++i) {
    if (to_string(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  return Error{ErrorCode::invalid_argument, "must be one of: " + all_words<Enum>(", "), ""};
}

/// Adds an option whose value is one of the words of an enum.
template <class Enum, class Take>
CLI::Option* add_word(CLI::App& command, const std::string& name, Take take) {
  return add_parsed<Enum>(command, name, parse_word<Enum>, take)->type_name(all_words<Enum>("|"));
}

template <class Number>
Number plain_number(const Number& number);
template <class Number>
Number plain_number(const std::optional<Number>& number);

/// Adds an option for a whole number in `range`. `number` is a number with the default, or an
/// optional number without a default.
template <class Number>
CLI::Option* add_number(CLI::App& app, const std::string& name, Number& number, NumberRange range) {
  using Read = decltype(plain_number(number));
  range.most = std::min<std::uint64_t>(range.most, std::numeric_limits<Read>::max());
  const auto read = [&number, range](const std::string& text) {
    number = static_cast<Read>(*parse_whole_number(text, range));
  };
  const auto fault_of = [range](const std::string& text) {
    const Result<std::uint64_t> value = parse_whole_number(text, range);
    return value ? std::string() : refusal(value.error(), text);
  };
  CLI::Option* option = app.add_option_function<std::string>(name, read);
  if constexpr (std::is_arithmetic_v<Number>) option->default_str(std::to_string(number));
  return option->type_name("N")->check(fault_of, to_string(range));
}

/// Adds --priority.
template <class Priority>
CLI::Option* add_priority(CLI::App& app, Priority& priority) {
  return add_number(app, "--priority", priority, {0, std::numeric_limits<std::uint32_t>::max()})
      ->description("Priority; a lower number is more urgent");
}

/// A command line must have at least one of these options. The error "… is required" begins with
/// `names`.
struct Choice {
  std::vector<const CLI::Option*> options;
  const char* names;
};

/// When the command line has been read and `command` was chosen: checks `choices` and copies
/// `asked`, into which the options have written, to call.command. All must outlive `command`.
template <class Asked>
void asks(CLI::App& command, ClientCall& call, Asked& asked, std::vector<Choice> choices = {}) {
  command.callback([&call, &asked, choices = std::move(choices)] {
    for (const Choice& choice : choices) {
      const bool is_made = std::ranges::any_of(
          choice.options, [](const CLI::Option* option) { return option->count() > 0; });
      if (!is_made) throw CLI::RequiredError(choice.names);
    }
    call.command = asked;
  });
}

/// Adds --delay and --due-at, which exclude each other. Returns both as a choice, for commands that
/// need one of them.
template <class Target>
Choice add_due(CLI::App& command, Target& due) {
  CLI::Option* delay = add_parsed<std::chrono::milliseconds>(
      command, "--delay", parse_any_duration, [&due](std::chrono::milliseconds d) { due = d; });
  delay->type_name("DURATION")
      ->description("Make the task due after this time: 1500ms, 30s, 5mins, 2h, 30d, 1y, PT1H");
  CLI::Option* due_at =
      add_parsed<WallTime>(command, "--due-at", parse_due_at, [&due](WallTime at) { due = at; });
  due_at->type_name("TIME")
      ->description(
          "Make the task due at this time: RFC 3339, a date, or milliseconds since 1970; "
          "a date is its start in UTC")
      ->excludes(delay);
  return {{delay, due_at}, "--delay or --due-at"};
}

/// Adds --server, --token, --ca and --json.
void add_call_options(CLI::App& app, ClientCall& call);
/// Adds a command that calls a server, with the options of add_call_options().
CLI::App* add_client_command(CLI::App& app, ClientCall& call, const char* name, const char* what);

}  // namespace detent::cli
