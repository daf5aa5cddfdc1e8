// Logs the reason when an exception finds no handler, on any thread.
#pragma once

namespace detent::server {

/// After this call, std::terminate logs the exception that caused it. If the system is out of
/// memory, threads or descriptors (std::bad_alloc, std::system_error), the process then exits with
/// 1: a restart may help, and all acknowledged tasks are in the store. Any other exception is a
/// bug, and the process still ends with SIGABRT. Call it before other threads start.
void install_terminate_handler();

}  // namespace detent::server
