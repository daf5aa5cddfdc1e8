// What reads options with CLI11, for the files that describe the command line: arguments.cc, and
// schedule_arguments.cc. No others see CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>

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

/// --server and --json.
void add_call_options(CLI::App& app, ClientCall& call);
CLI::App* add_client_command(CLI::App& app, ClientCall& call, const char* name, const char* what);

}  // namespace detent::cli
