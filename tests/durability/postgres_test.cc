// Tests the server with PostgreSQL, both as processes. The database crashes and comes back, the
// server is killed and restarted, and a second server is refused.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "detent/clock.h"
#include "store/postgres/testing/private_cluster.h"
#include "tests/durability/child_server.h"
#include "tests/support/client_of.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

constexpr const char* kWaiting = "waiting for the store";

class ServerOnPostgres : public testing::Test {
 protected:
  Client client() const { return test::client_of(server_.url()); }
  bool schedule(std::chrono::milliseconds delay = 1h) {
    const auto task = client().schedule({.queue = "q", .due = delay});
    if (task) accepted_.push_back(task->id);
    return task.has_value();
  }
  /// Returns true if the server accepts a task within a minute.
  bool accepts_again() {
    const MonotonicTime until = clock_.now() + 1min;
    Doorbell nobody_rings;
    while (!schedule()) {
      if (clock_.now() > until) return false;
      clock_.wait(nobody_rings, clock_.now() + 50ms);
    }
    return true;
  }
  void expect_all_there() {
    for (const std::uint64_t id : accepted_) EXPECT_TRUE(client().get(id)) << id;
  }

  SystemClock clock_;
  PrivateCluster cluster_{PrivateCluster::Fsync::on};
  std::string url_ = cluster_.new_database();
  ChildServer server_{{.program = DETENT_BINARY, .data = "/nowhere", .flags = {"--store", url_}}};
  std::vector<std::uint64_t> accepted_;
};

TEST_F(ServerOnPostgres, GoesOnByItselfWhenTheDatabaseIsBack) {
  ASSERT_TRUE(server_.start()) << server_.log();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(schedule());
  cluster_.kill();
  EXPECT_FALSE(schedule());
  EXPECT_FALSE(client().ready());
  EXPECT_TRUE(server_.is_running());
  cluster_.start();
  ASSERT_TRUE(accepts_again()) << server_.log();
  cluster_.stop();
  EXPECT_FALSE(schedule());
  cluster_.start();
  ASSERT_TRUE(accepts_again()) << server_.log();
  expect_all_there();
  EXPECT_EQ(server_.stop(), 0);
  EXPECT_EQ(value_of(url_, "select count(*) from detent.task"), std::to_string(accepted_.size()));
}

TEST_F(ServerOnPostgres, WaitsForTheLeaseOfOneThatWasKilled) {
  ASSERT_TRUE(server_.start()) << server_.log();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(schedule());
  server_.kill();
  ASSERT_TRUE(server_.start()) << server_.log();
  const std::string log = server_.log();
  std::size_t told = 0;
  for (std::size_t at = log.find(kWaiting); at != log.npos; at = log.find(kWaiting, at + 1)) ++told;
  EXPECT_GE(told, 1u) << log;
  EXPECT_LE(told, 4u) << "once a cause, however often it is tried\n" << log;
  expect_all_there();
  ASSERT_TRUE(schedule());
}

TEST_F(ServerOnPostgres, ASecondServerIsRefusedAndHarmsNothing) {
  ASSERT_TRUE(server_.start()) << server_.log();
  ASSERT_TRUE(schedule());
  ChildServer second({.program = DETENT_BINARY, .data = "/nowhere", .flags = {"--store", url_}});
  EXPECT_FALSE(second.start());
  EXPECT_EQ(second.exit_status(), 1);
  EXPECT_NE(second.log().find("in use by another server (process "), std::string::npos);
  EXPECT_TRUE(schedule());
  expect_all_there();
}

}  // namespace
}  // namespace detent
