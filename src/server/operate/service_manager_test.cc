#include "server/operate/service_manager.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "base/thread.h"
#include "server/testing/test_notify_socket.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

/// The environment that a service manager gives, for one test.
class Given {
 public:
  explicit Given(const std::string& socket) { set("NOTIFY_SOCKET", socket); }
  ~Given() {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;
  void set(const char* name, const std::string& value) const { setenv(name, value.c_str(), 1); }
};

TEST(ServiceManager, IsToldEachStateInADatagram) {
  NotifySocket socket;
  ASSERT_TRUE(socket.name().starts_with('@'));
  const Given given(socket.name());
  const ServiceManager manager;
  manager.ready();
  EXPECT_EQ(socket.next(), "READY=1");
  manager.reloading(MonotonicTime{12'345'678'999ns});
  EXPECT_EQ(socket.next(), "RELOADING=1\nMONOTONIC_USEC=12345678");
  manager.works();
  EXPECT_EQ(socket.next(), "WATCHDOG=1");
  manager.stopping();
  EXPECT_EQ(socket.next(), "STOPPING=1");
  EXPECT_TRUE(socket.is_silent());
}

// As for a server with a slow start, on a machine where the service manager gets no processor time.
TEST(ServiceManager, LosesNoStateBehindManySignsOfLife) {
  NotifySocket socket;
  const Given given(socket.name());
  const ServiceManager manager;
  for (int i = 0; i < 1'000; ++i) manager.works();
  Thread telling([&manager] { manager.ready(); });
  std::optional<std::string> told = socket.next();
  while (told == "WATCHDOG=1") told = socket.next();
  EXPECT_EQ(told, "READY=1");
  telling.join();
}

TEST(ServiceManager, IsFoundByAPathToo) {
  NotifySocket socket(std::filesystem::temp_directory_path() /
                      ("detent-notify-" + std::to_string(::getpid())));
  const Given given(socket.name());
  ServiceManager().ready();
  EXPECT_EQ(socket.next(), "READY=1");
}

TEST(ServiceManager, WithoutOneNothingHappens) {
  const ServiceManager manager;
  manager.ready();
  EXPECT_EQ(manager.watchdog(), std::nullopt);
  for (const std::string& name : {std::string("vsock:2:1"), std::string("@"), std::string(),
                                  std::string("/nowhere/notify"), "/" + std::string(200, 'x')}) {
    const Given given(name);
    given.set("WATCHDOG_USEC", "1000000");
    const ServiceManager unreachable;
    unreachable.ready();
    EXPECT_EQ(unreachable.watchdog(), std::nullopt) << name;
  }
}

TEST(ServiceManager, ItsWatchdogIsForThisProcessOnly) {
  NotifySocket socket;
  const Given given(socket.name());
  EXPECT_EQ(ServiceManager().watchdog(), std::nullopt);
  given.set("WATCHDOG_USEC", "1500000");
  EXPECT_EQ(ServiceManager().watchdog(), 1500ms);
  given.set("WATCHDOG_PID", std::to_string(::getpid()));
  EXPECT_EQ(ServiceManager().watchdog(), 1500ms);
  given.set("WATCHDOG_PID", std::to_string(::getppid()));
  EXPECT_EQ(ServiceManager().watchdog(), std::nullopt);
  unsetenv("WATCHDOG_PID");
  for (const char* wrong : {"", "0", "-1", "1x", "9999999999999999999999"}) {
    given.set("WATCHDOG_USEC", wrong);
    EXPECT_EQ(ServiceManager().watchdog(), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace detent::server
