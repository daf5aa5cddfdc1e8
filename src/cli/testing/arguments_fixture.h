// Test helpers that parse a command line as main() does and return one kind of result.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/arguments/arguments.h"

namespace detent::cli {

inline Invocation parse(std::vector<const char*> words) {
  words.insert(words.begin(), "detent");
  return parse_arguments(static_cast<int>(words.size()), words.data());
}

/// The call of a command line. If there is none, the test fails and the call is empty.
inline ClientCall call_of(const std::vector<const char*>& words) {
  Invocation invocation = parse(words);
  if (const auto* nothing = std::get_if<NothingToRun>(&invocation)) {
    ADD_FAILURE() << nothing->text;
    return {};
  }
  return std::get<ClientCall>(std::move(invocation));
}

template <class Command>
Command command_of(const std::vector<const char*>& words) {
  return std::get<Command>(call_of(words).command);
}

inline ServeOptions serve_of(const std::vector<const char*>& words) {
  Invocation invocation = parse(words);
  if (const auto* nothing = std::get_if<NothingToRun>(&invocation)) {
    ADD_FAILURE() << nothing->text;
    return {};
  }
  return std::get<ServeCall>(std::move(invocation)).options;
}

/// The error message for a wrong command line. The test fails if the line is not wrong usage.
inline std::string complaint_about(const std::vector<const char*>& words) {
  const Invocation invocation = parse(words);
  const auto* nothing = std::get_if<NothingToRun>(&invocation);
  if (nothing == nullptr) {
    ADD_FAILURE() << "accepted: " << testing::PrintToString(words);
    return {};
  }
  EXPECT_EQ(nothing->exit_code, ExitCode::usage);
  return nothing->text;
}

}  // namespace detent::cli
