// The terminal that `detent top` has for itself, and the pipe that it hasn't.
//
// Control sequences are those of ECMA-48 and xterm, which every terminal in use knows; no library
// is asked. Signals come as bytes of a descriptor (signalfd) beside the keys, so nothing happens in
// a handler, and the way out is always the destructor, which gives the terminal back as it was.
#pragma once

#include <memory>

#include "cli/top_command.h"

namespace detent::cli {

/// A screen where standard input and output are a terminal, else lines on `out`. Blocks the signals
/// that end or stop a process, for as long as it lives. At most one at a time.
std::unique_ptr<TopDisplay> open_top_display(const Streams& streams);

}  // namespace detent::cli
