// Command lines read as main() reads them, for the tests of what they mean.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/arguments.h"

namespace detent::cli {

inline Invocation parse(std::vector<const char*> words) {
  words.insert(words.begin(), "detent");
  return parse_arguments(static_cast<int>(words.size()), words.data());
}

/// The call a command line makes; a failed test and an empty one when it makes none.
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

/// What a wrong command line is told; it must be wrong usage.
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
