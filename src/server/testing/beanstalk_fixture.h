// Fixture for tests of the beanstalk server: real sockets, an HTTP interface on the same engine, a
// store in memory, and a clock that only the test moves.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "server/beanstalk/beanstalk_server.h"
#include "server/beanstalk/engine_shards.h"
#include "server/testing/routes_fixture.h"
#include "tests/support/raw_socket.h"

namespace detent::server {

/// A client that sends commands and reads whole replies.
class BeanstalkClient {
 public:
  explicit BeanstalkClient(std::uint16_t port) : socket_(port) {}

  /// Sends one line, or several, without the last "\r\n".
  void send(const std::string& line) { ASSERT_TRUE(socket_.send(line + "\r\n")); }
  /// Reads one reply without its "\r\n". A job or YAML follows its line, after a "\n".
  std::string read() {
    std::string line = read_line();
    if (!line.starts_with("RESERVED ") && !line.starts_with("FOUND ") && !line.starts_with("OK ")) {
      return line;
    }
    const std::size_t size = std::strtoul(line.c_str() + line.rfind(' '), nullptr, 10);
    std::string data = socket_.read(size + 2);
    EXPECT_TRUE(data.ends_with("\r\n")) << line;
    return line + "\n" + data.substr(0, size);
  }
  std::string ask(const std::string& line) {
    send(line);
    return read();
  }
  /// Puts a job and returns its id as text; `rest` is priority, delay and time to run.
  std::string put(const std::string& rest = "1024 0 60", const std::string& body = "body") {
    const std::string reply =
        ask("put " + rest + " " + std::to_string(body.size()) + "\r\n" + body);
    EXPECT_TRUE(reply.starts_with("INSERTED ")) << reply;
    return reply.substr(reply.find(' ') + 1);
  }
  /// The field of a YAML reply.
  std::string field(const std::string& command, const std::string& key) {
    const std::string reply = "\n" + ask(command);
    const std::size_t at = reply.find("\n" + key + ": ");
    if (at == std::string::npos) return "no " + key + " in" + reply;
    const std::size_t begin = at + key.size() + 3;
    return reply.substr(begin, reply.find('\n', begin) - begin);
  }
  std::string state_of(const std::string& id) {
    const std::string state = field("stats-job " + id, "state");
    return state.starts_with("no ") ? "none" : state;
  }
  test::RawSocket& socket() { return socket_; }

 private:
  std::string read_line() {
    std::string line;
    while (!line.ends_with("\r\n")) {
      const std::string byte = socket_.read(1);
      if (byte.empty()) return line + "<end>";
      line += byte;
    }
    return line.substr(0, line.size() - 2);
  }

  test::RawSocket socket_;
};

class BeanstalkTest : public RoutesTest {
 public:
  BeanstalkTest() { serve(); }
  ~BeanstalkTest() override {
    beanstalk_->stop(0ms);
    engine_->stop();
  }

 protected:
  void serve() {
    job_shards_ = std::make_unique<EngineShards>(*engine_, clock_);
    beanstalk_ = BeanstalkServer::start({}, *job_shards_, clock_).value();
  }
  BeanstalkClient connect() const { return BeanstalkClient(beanstalk_->port()); }
  /// Blocks until this number of connections wait in a reserve.
  void await_waiting(BeanstalkClient& asker, const std::string& count) {
    while (asker.field("stats", "current-waiting") != count) {
    }
  }

  std::unique_ptr<EngineShards> job_shards_;
  std::unique_ptr<BeanstalkServer> beanstalk_;
};

}  // namespace detent::server
