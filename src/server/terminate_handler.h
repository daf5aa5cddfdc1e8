// What happens when an exception finds no handler, on any thread: the log gets the reason.
#pragma once

namespace detent::server {

/// From now on std::terminate logs the exception that caused it. When the system is out of memory,
/// threads or descriptors (std::bad_alloc, std::system_error), the process then exits with 1: a
/// restart may help, and the store loses nothing that was acknowledged. Any other exception is a
/// bug, which still ends the process with SIGABRT. Call it before other threads start.
void install_terminate_handler();

}  // namespace detent::server
