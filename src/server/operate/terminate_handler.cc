#include "server/operate/terminate_handler.h"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "base/log/log.h"

namespace detent::server {
namespace {

/// Given back before the log is written, which takes memory.
constexpr std::size_t kReserveBytes = std::size_t{256} << 10;

/// This is global because a terminate handler has no object. A caller that takes the pointer out
/// must free it.
std::atomic<void*>& reserved_memory() {
  static std::atomic<void*> bytes{nullptr};
  return bytes;
}

void say_last(std::string_view what, const char* cause, std::string_view action) noexcept {
  try {
    log_error(what, {{"cause", cause}, {"action", action}});
  } catch (...) {  // the reserve was not enough
    for (const std::string_view part :
         {what, std::string_view(": "), std::string_view(cause), std::string_view("\n")}) {
      [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, part.data(), part.size());
    }
  }
}

[[noreturn]] void exit_for_lack(const char* cause) noexcept {
  say_last("the system is out of memory, threads or descriptors; the process ends", cause,
           "raise the limit, or lower --memory; then start the server again");
  ::_exit(1);
}

[[noreturn]] void abort_for_bug(const char* cause) noexcept {
  say_last("an exception was not handled; the process aborts", cause,
           "start the server again, and report this line as a bug");
  std::abort();
}

[[noreturn]] void on_terminate() noexcept {
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): memory for the last line
  std::free(reserved_memory().exchange(nullptr));
  const std::exception_ptr thrown = std::current_exception();
  if (!thrown) abort_for_bug("no exception was thrown");
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    exit_for_lack("out of memory");
  } catch (const std::system_error& error) {
    exit_for_lack(error.what());
  } catch (const std::exception& error) {
    abort_for_bug(error.what());
  } catch (...) {
    // Told, and then the process ends.
    abort_for_bug("it is not a std::exception");
  }
}

}  // namespace

void install_terminate_handler() {
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): as in on_terminate()
  std::free(reserved_memory().exchange(std::malloc(kReserveBytes)));
  std::set_terminate(on_terminate);
}

}  // namespace detent::server
