#include "server/operate/watchdog.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <memory>
#include <optional>

#include "server/testing/test_notify_socket.h"
#include "store/testing/fault_store.h"
#include "store/testing/memory_store.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

/// Makes an engine hang in a command until end(). The command runs when the constructor returns.
class HangingCommand {
 public:
  explicit HangingCommand(EngineThread& engine) {
    engine.post_end([this](Engine&) {
      runs_.set_value();
      ends_.get_future().wait();
    });
    runs_.get_future().wait();
  }
  void end() { ends_.set_value(); }

 private:
  std::promise<void> runs_;
  std::promise<void> ends_;
};

/// A server with a watchdog of 10 s, which therefore reports every 5 s. Only the test moves the
/// clock.
class WatchdogTest : public ::testing::Test {
 public:
  WatchdogTest() {
    setenv("NOTIFY_SOCKET", socket_.name().c_str(), 1);
    setenv("WATCHDOG_USEC", "10000000", 1);
    manager_.emplace();
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    watchdog_.emplace(*manager_, engine_, clock_);
  }

 protected:
  /// Waits until the watchdog and the engine (if it works) have done all their work. Then moves
  /// time.
  void advance(std::chrono::milliseconds by, int waiters = 2) {
    clock_.await_waiters(waiters);
    clock_.advance(by);
    clock_.await_waiters(waiters);
  }

  ManualClock clock_;
  NotifySocket socket_;
  MemoryDisk disk_;
  FaultStore store_{MemoryStore::open(disk_).value()};
  std::optional<ServiceManager> manager_;
  EngineThread engine_{
      OpenEngine{.store = nullptr, .engine = Engine::open(store_, clock_, {}).value()}, clock_};
  std::optional<Watchdog> watchdog_;
};

TEST_F(WatchdogTest, SpeaksAtHalfOfTheTimeWhileTheEngineAnswers) {
  EXPECT_EQ(socket_.next(), "WATCHDOG=1");  // at once
  for (int i = 0; i < 5; ++i) {
    advance(4999ms);
    EXPECT_TRUE(socket_.is_silent());
    advance(1ms);
    EXPECT_EQ(socket_.next(), "WATCHDOG=1");
    EXPECT_TRUE(socket_.is_silent());
  }
}

TEST_F(WatchdogTest, IsSilentWhileTheEngineHangsAndSpeaksOnceWhenItGoesOn) {
  EXPECT_EQ(socket_.next(), "WATCHDOG=1");
  clock_.await_waiters(2);
  HangingCommand hanging(engine_);
  for (int i = 0; i < 10; ++i) advance(5s, 1);
  EXPECT_TRUE(socket_.is_silent());
  hanging.end();
  EXPECT_EQ(socket_.next(), "WATCHDOG=1");
  clock_.await_waiters(2);
  EXPECT_TRUE(socket_.is_silent());
  advance(5s);
  EXPECT_EQ(socket_.next(), "WATCHDOG=1");
}

TEST_F(WatchdogTest, SpeaksThoughTheEngineIsFloodedWithCommands) {
  EXPECT_EQ(socket_.next(), "WATCHDOG=1");
  clock_.await_waiters(2);
  HangingCommand hanging(engine_);
  for (int i = 0; i < 100; ++i) engine_.post_end([&](Engine&) { clock_.advance(1ms); });
  bool has_spoken = false;
  engine_.post_end([&](Engine&) { has_spoken = !socket_.is_silent(); });
  advance(5s, 1);  // it asks, behind all of them
  hanging.end();
  clock_.await_waiters(2);
  EXPECT_TRUE(has_spoken) << "before the last of them ran";
}

TEST_F(WatchdogTest, AStoreThatFailedIsNoReasonToBeKilled) {
  EXPECT_EQ(socket_.next(), "WATCHDOG=1");
  clock_.await_waiters(2);
  store_.fail_write(1, WriteFault::not_applied);
  engine_.post_end([](Engine& engine) { (void)engine.schedule({.queue = "q", .due = 1h}); });
  advance(5s);
  EXPECT_EQ(socket_.next(), "WATCHDOG=1");
  EXPECT_EQ(store_.write_count(), 2U) << "the first opened the engine, the second failed";
}

TEST_F(WatchdogTest, MayGoWhileTheEngineHangs) {
  EXPECT_EQ(socket_.next(), "WATCHDOG=1");
  clock_.await_waiters(2);
  HangingCommand hanging(engine_);
  advance(5s, 1);
  watchdog_.reset();
  hanging.end();
  EXPECT_EQ(socket_.next(), "WATCHDOG=1");
}

TEST(Watchdog, WithoutAManagerThereIsNoThread) {
  ManualClock clock;
  MemoryDisk disk;
  const std::unique_ptr<Store> store = MemoryStore::open(disk).value();
  EngineThread engine(
      OpenEngine{.store = nullptr, .engine = Engine::open(*store, clock, {}).value()}, clock);
  const ServiceManager manager;
  const Watchdog watchdog(manager, engine, clock);
  clock.await_waiters(1);  // the engine's thread alone
}

}  // namespace
}  // namespace detent::server
