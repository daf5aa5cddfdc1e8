// Whether somebody looks: what a terminal gets, and a pipe does not.
#pragma once

#include <cstddef>

namespace detent::cli {

struct Terminal {
  std::size_t columns = 0;         // of standard output's; 0: it is no terminal
  bool is_error_terminal = false;  // standard error is one
  bool is_input_terminal = false;  // standard input is one
};

/// That of this process.
Terminal terminal_of_process() noexcept;

}  // namespace detent::cli
