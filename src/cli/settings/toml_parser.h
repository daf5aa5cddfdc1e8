// Includes toml++, the parser of files that people write. No other file includes it, so the whole
// program uses one configuration of it.
//
// Two input files break Debian's toml++ 3.3. "[\]" fails an assertion. A letter beyond ASCII
// outside of quotes reaches code that is marked as unreachable, which is undefined behaviour. The
// macros below disable the assertion and return from the unreachable code, so the parser rejects
// such files and names the line, as for other errors (tests/fuzz/config_files.cc found these
// files).
#pragma once

#define TOML_EXCEPTIONS 0         // errors are values, not exceptions
#define TOML_ENABLE_FORMATTERS 0  // the program only reads TOML
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/impl/forward_declarations.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE \
  return {}
#include <toml++/impl/unicode.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE __builtin_unreachable()
#include <toml++/toml.h>
