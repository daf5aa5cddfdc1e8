// The real displays of `detent top`: a screen for terminals, and lines for pipes.
//
// The control sequences are those of ECMA-48 and xterm, which all terminals in use support, so no
// library is needed. A descriptor (signalfd) delivers signals like keys, so there is no signal
// handler. The destructor always restores the terminal.
#pragma once

#include <memory>

#include "cli/commands/top_command.h"

namespace detent::cli {

/// Returns a screen if standard input and output are a terminal, else lines on `out`. The display
/// blocks the signals that end or stop a process until it is destroyed. Requires: only one display
/// exists at a time.
std::unique_ptr<TopDisplay> open_top_display(const Streams& streams);

}  // namespace detent::cli
