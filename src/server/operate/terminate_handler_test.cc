#include "server/operate/terminate_handler.h"

#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace detent::server {
namespace {

/// Throws an exception on a new thread, where no code catches it.
void throw_on_thread(const std::function<void()>& thrower) {
  install_terminate_handler();
  std::thread([&thrower] { thrower(); }).join();
}

TEST(TerminateHandlerDeathTest, OutOfMemoryOrThreadsExitsWith1AndSaysWhy) {
  const std::string lack = "out of memory, threads or descriptors; the process ends cause=";
  EXPECT_EXIT(throw_on_thread([] { throw std::bad_alloc(); }), testing::ExitedWithCode(1),
              lack + "\"out of memory\" action=\"raise the limit");
  const auto no_thread = [] {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  EXPECT_EXIT(throw_on_thread(no_thread), testing::ExitedWithCode(1),
              lack + "\"Resource temporarily unavailable\"");
}

TEST(TerminateHandlerDeathTest, ABugAbortsAndSaysWhy) {
  EXPECT_EXIT(throw_on_thread([] { throw std::logic_error("a bug"); }),
              testing::KilledBySignal(SIGABRT),
              "an exception was not handled; the process aborts cause=\"a bug\" action=\"start the "
              "server again");
}

}  // namespace
}  // namespace detent::server
