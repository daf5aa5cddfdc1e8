// Beanstalk clients of a store that fails: a command that may not be durable is not confirmed.
#include "server/testing/beanstalk_fixture.h"
#include "store/testing/fault_store.h"

namespace detent::server {
namespace {

class BeanstalkFailure : public ::testing::Test {
 public:
  /// The second write fails.
  BeanstalkFailure() {
    std::unique_ptr<Engine> engine = Engine::open(store_, clock_, {}).value();
    store_.fail_write(2, WriteFault::applied);
    engine_ = std::make_unique<EngineThread>(
        OpenEngine{.store = nullptr, .engine = std::move(engine)}, clock_);
    shards_ = std::make_unique<EngineShards>(*engine_, clock_);
    server_ = BeanstalkServer::start({}, *shards_, clock_).value();
  }
  ~BeanstalkFailure() override {
    server_->stop(0ms);
    engine_->stop();
  }

 protected:
  BeanstalkClient connect() const { return BeanstalkClient(server_->port()); }

  ManualClock clock_;
  MemoryDisk disk_;
  FaultStore store_{MemoryStore::open(disk_).value()};
  std::unique_ptr<EngineThread> engine_;
  std::unique_ptr<EngineShards> shards_;
  std::unique_ptr<BeanstalkServer> server_;
};

TEST_F(BeanstalkFailure, EveryReplyOfACommitThatFailedIsAnInternalError) {
  BeanstalkClient client = connect();
  client.put();
  client.send("put 0 0 60 1\r\nx\r\nuse a\r\nreserve-with-timeout 0");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.read(), "INTERNAL_ERROR");
  EXPECT_EQ(client.ask("put 0 0 60 1\r\nx"), "INTERNAL_ERROR");
  EXPECT_EQ(client.ask("reserve"), "INTERNAL_ERROR") << "it does not wait";
}

TEST_F(BeanstalkFailure, AWaitingClientGetsTheErrorOfAFailedStore) {
  BeanstalkClient waiting = connect();
  BeanstalkClient client = connect();
  waiting.ask("watch a");
  waiting.ask("ignore default");
  waiting.send("reserve");
  while (client.field("stats", "current-waiting") != "1") {
  }
  client.put();
  EXPECT_EQ(client.ask("put 0 0 60 1\r\nx"), "INTERNAL_ERROR");
  EXPECT_EQ(waiting.read(), "INTERNAL_ERROR");
}

}  // namespace
}  // namespace detent::server
