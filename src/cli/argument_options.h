// What reads options with CLI11, for the files that describe the command line: arguments.cc, and
// those named *_arguments.cc. No others see CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/argument_values.h"
#include "cli/arguments.h"

namespace detent::cli {

/// An option whose text `parse` reads: CLI11 tells its error with the option's name, and `take`
/// gets the value.
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
        return value ? std::string() : value.error().message;
      },
      "");
}

CLI::Option* add_duration(CLI::App& app, const std::string& name,
                          std::chrono::milliseconds& duration);
CLI::Option* add_duration(CLI::App& app, const std::string& name,
                          std::optional<std::chrono::milliseconds>& duration);

/// --priority.
template <class Priority>
CLI::Option* add_priority(CLI::App& app, Priority& priority) {
  return app.add_option("--priority", priority, "lower is more urgent")
      ->type_name("N")
      ->check(CLI::Range(std::uint32_t{0}, std::numeric_limits<std::uint32_t>::max()));
}

/// Options of which a command line must have one, and what that is called in the error.
struct Choice {
  std::vector<const CLI::Option*> options;
  const char* names;
};

/// What `command` asks of the server is `asked` as it stands when the line has been read; which
/// must have made the choices. All must outlive `command`.
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

/// --delay and --due-at; one of them, or none.
template <class Target>
Choice add_due(CLI::App& command, Target& due) {
  CLI::Option* delay = add_parsed<std::chrono::milliseconds>(
      command, "--delay", parse_any_duration, [&due](std::chrono::milliseconds d) { due = d; });
  delay->type_name("DURATION")->description("due so long from now: 1500ms, 30s, 5m, 2h, 30d, PT1H");
  CLI::Option* due_at =
      add_parsed<WallTime>(command, "--due-at", parse_due_at, [&due](WallTime at) { due = at; });
  due_at->type_name("TIME")
      ->description("due then: RFC 3339, or milliseconds since 1970")
      ->excludes(delay);
  return {{delay, due_at}, "--delay or --due-at"};
}

/// --server and --json.
void add_call_options(CLI::App& app, ClientCall& call);
CLI::App* add_client_command(CLI::App& app, ClientCall& call, const char* name, const char* what);

}  // namespace detent::cli
