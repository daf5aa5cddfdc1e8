// Which standard streams of the process are a terminal. Output to a terminal is cut at its width.
#pragma once

#include <cstddef>

namespace detent::cli {

struct Terminal {
  std::size_t columns = 0;         // width of standard output; 0: it is not a terminal
  bool is_error_terminal = false;  // standard error is a terminal
  bool is_input_terminal = false;  // standard input is a terminal
};

/// The terminal of this process.
Terminal terminal_of_process() noexcept;

}  // namespace detent::cli
