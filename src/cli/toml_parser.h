// toml++, as a parser of files that people write: included from here only, so that all of the
// program has one version of it.
//
// Two promises of Debian's toml++ 3.3 don't hold for files that are wrong: "[\]" fails one of its
// assertions, and a letter beyond ASCII outside of quotes reaches a place that it calls
// unreachable, which is undefined behaviour. Without both such a file is refused as any wrong one
// is, with its line (tests/fuzz/config_files.cc found them).
#pragma once

#define TOML_EXCEPTIONS 0         // errors are values
#define TOML_ENABLE_FORMATTERS 0  // it is only read
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/impl/forward_declarations.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE \
  return {}
#include <toml++/impl/unicode.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE __builtin_unreachable()
#include <toml++/toml.h>
