#include "cli/output/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace detent::cli {

Terminal terminal_of_process() noexcept {
  constexpr std::size_t kUsualColumns = 80;
  Terminal terminal{.columns = 0,
                    .is_error_terminal = isatty(STDERR_FILENO) == 1,
                    .is_input_terminal = isatty(STDIN_FILENO) == 1};
  if (isatty(STDOUT_FILENO) != 1) return terminal;
  winsize size{};
  const bool is_told = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  terminal.columns = is_told ? size.ws_col : kUsualColumns;
  return terminal;
}

}  // namespace detent::cli
