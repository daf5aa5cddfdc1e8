// A stream server with a scripted handler: turns, disconnects, limits and stop.
#include "net/socket/stream_server.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/mutex.h"
#include "tests/support/raw_socket.h"

namespace detent::net {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using test::RawSocket;

/// Records the callbacks of the handlers. Thread-safe.
class Diary {
 public:
  void note(std::string what) {
    const MutexLock lock(mu_);
    notes_.push_back(std::move(what));
    noted_.notify_all();
  }
  /// Waits until there are `count` entries, and returns them.
  std::vector<std::string> first(std::size_t count) {
    const MutexLock lock(mu_);
    while (notes_.size() < count) noted_.wait(mu_);
    return notes_;
  }

 private:
  Mutex mu_;
  CondVar noted_;
  std::vector<std::string> notes_ DETENT_GUARDED_BY(mu_);
};

/// Sends each piece back, except: "hold" gets no answer, "big" gets 64 MiB, "bye" closes, and
/// "soon" sets a limit of 1 ms for the next piece.
class Scripted final : public StreamHandler {
 public:
  Scripted(Stream& stream, Diary& diary) : stream_(stream), diary_(diary) {}
  void on_bytes(std::string_view bytes) override {
    if (bytes == "hold") return diary_.note("held");
    if (bytes == "bye") return stream_.close();
    if (bytes == "soon") return stream_.read(1ms);
    stream_.send(bytes == "big" ? std::string(64 << 20, 'x') : std::string(bytes));
  }
  void on_sent() override { stream_.read({}); }
  void on_end() override {
    diary_.note("end");
    stream_.send("last words");
  }
  void on_closed() override { diary_.note("closed"); }

 private:
  Stream& stream_;
  Diary& diary_;
};

class StreamServerTest : public ::testing::Test {
 protected:
  void start(StreamServerOptions options = {}) {
    server_ = StreamServer::start(std::move(options), [this](const std::shared_ptr<Stream>& s) {
                return std::make_unique<Scripted>(*s, diary_);
              }).value();
  }
  RawSocket connect() const { return RawSocket(server_->port()); }

  Diary diary_;
  std::unique_ptr<StreamServer> server_;
};

TEST_F(StreamServerTest, AnswersOneTurnAfterAnother) {
  start();
  RawSocket client = connect();
  for (const char* const text : {"one", "two", "three"}) {
    ASSERT_TRUE(client.send(text));
    EXPECT_EQ(client.read(std::string(text).size()), text);
  }
  ASSERT_TRUE(client.send("bye"));
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_EQ(diary_.first(1), std::vector<std::string>{"closed"});
}

TEST_F(StreamServerTest, ReportsTheEndOfInputWhileTheHandlerHasTheTurn) {
  start();
  RawSocket client = connect();
  ASSERT_TRUE(client.send("hold"));
  diary_.first(1);
  client.shut_down_sending();
  EXPECT_EQ(client.read_to_end(), "last words") << "the answer must arrive before the close";
  EXPECT_EQ(diary_.first(3), (std::vector<std::string>{"held", "end", "closed"}));
}

TEST_F(StreamServerTest, ClosesWhenTheClientHasGone) {
  start();
  RawSocket idle = connect();
  ASSERT_TRUE(idle.send("x"));
  EXPECT_EQ(idle.read(1), "x");
  idle.close();
  EXPECT_EQ(diary_.first(1), std::vector<std::string>{"closed"});
  RawSocket held = connect();
  ASSERT_TRUE(held.send("hold"));
  diary_.first(2);
  held.reset();
  EXPECT_EQ(diary_.first(3).back(), "closed");
}

TEST_F(StreamServerTest, CutsAClientThatReadsNothingAndServesOthers) {
  start({.write_timeout = 50ms});
  RawSocket slow(server_->port(), 4'096);
  ASSERT_TRUE(slow.send("big"));
  RawSocket other = connect();
  ASSERT_TRUE(other.send("x"));
  EXPECT_EQ(other.read(1), "x");
  EXPECT_EQ(diary_.first(1), std::vector<std::string>{"closed"});
}

TEST_F(StreamServerTest, CutsAClientThatDoesNotSendInTime) {
  start();
  RawSocket client = connect();
  ASSERT_TRUE(client.send("soon"));
  EXPECT_EQ(client.read_to_end(), "");
}

TEST_F(StreamServerTest, ClosesConnectionsBeyondTheLimit) {
  start({.max_connections = 1});
  RawSocket first = connect();
  ASSERT_TRUE(first.send("x"));
  EXPECT_EQ(first.read(1), "x");
  RawSocket second = connect();
  EXPECT_EQ(second.read_to_end(), "");
  EXPECT_EQ(server_->connections(), 1u);
  ASSERT_TRUE(first.send("y"));
  EXPECT_EQ(first.read(1), "y");
}

TEST_F(StreamServerTest, ClosesConnectionsBeyondTheLimitOfAnAddress) {
  start({.max_connections_of_address = 1});
  RawSocket first = connect();
  ASSERT_TRUE(first.send("x"));
  EXPECT_EQ(first.read(1), "x");
  RawSocket second = connect();
  EXPECT_EQ(second.read_to_end(), "");
  ASSERT_TRUE(first.send("y"));
  EXPECT_EQ(first.read(1), "y");
}

TEST_F(StreamServerTest, ClosesSilentConnectionsForNewOnes) {
  for (const bool is_of_address : {false, true}) {
    SCOPED_TRACE(is_of_address);
    StreamServerOptions options;
    (is_of_address ? options.max_connections_of_address : options.max_connections) = 1;
    start(options);
    RawSocket silent = connect();
    RawSocket first = connect();
    ASSERT_TRUE(first.send("x"));
    EXPECT_EQ(first.read(1), "x");
    EXPECT_EQ(silent.read_to_end(), "");
    RawSocket second = connect();
    EXPECT_EQ(second.read_to_end(), "");
  }
}

TEST_F(StreamServerTest, StopClosesIdleConnectionsFirstAndOthersAfterTheGrace) {
  start();
  RawSocket idle = connect();
  RawSocket held = connect();
  ASSERT_TRUE(idle.send("x"));
  EXPECT_EQ(idle.read(1), "x");
  ASSERT_TRUE(held.send("hold"));
  diary_.first(1);
  server_->stop(20ms);
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_EQ(held.read_to_end(), "");
  EXPECT_EQ(diary_.first(3), (std::vector<std::string>{"held", "closed", "closed"}));
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(StreamServerTest, SaysWhyItCannotListen) {
  start();
  const auto factory = [this](const std::shared_ptr<Stream>& stream) {
    return std::make_unique<Scripted>(*stream, diary_);
  };
  const auto taken = StreamServer::start({.port = server_->port()}, factory);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::unavailable);
  EXPECT_EQ(StreamServer::start({.address = "nowhere"}, factory).error().code,
            ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace detent::net
