// Tests the beanstalk protocol of the server process across kill -9 and signals. Jobs that were
// answered with INSERTED must survive with their statistics. SIGUSR1 starts drain mode.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "tests/durability/child_server.h"
#include "tests/support/raw_socket.h"

namespace detent {
namespace {

/// Sends a command, and reads as many bytes as the expected reply `like` has.
std::string ask(test::RawSocket& socket, const std::string& command, const std::string& like) {
  EXPECT_TRUE(socket.send(command + "\r\n"));
  return socket.read(like.size() + 2);
}

void expect(test::RawSocket& socket, const std::string& command, const std::string& reply) {
  EXPECT_EQ(ask(socket, command, reply), reply + "\r\n") << command;
}

class BeanstalkProcess : public ::testing::Test {
 protected:
  TestFolder folder_;
  ChildServer server_{{.program = DETENT_BINARY, .data = folder_ / "data"}};
};

TEST_F(BeanstalkProcess, WhatWasInsertedIsThereAfterAKill) {
  ASSERT_TRUE(server_.start());
  std::string first_id;
  {
    test::RawSocket socket(server_.beanstalk_port());
    first_id = ask(socket, "put 7 0 60 5\r\nhello", "INSERTED 256").substr(9);
    first_id.resize(first_id.find('\r'));
    expect(socket, "put 8 0 60 5\r\nworld", "INSERTED 512");
    expect(socket, "reserve", "RESERVED " + first_id + " 5\r\nhello");
    expect(socket, "release " + first_id + " 7 0", "RELEASED");
    expect(socket, "reserve", "RESERVED " + first_id + " 5\r\nhello");
    server_.kill();
  }
  ASSERT_TRUE(server_.start());
  test::RawSocket socket(server_.beanstalk_port());
  expect(socket, "reserve", "RESERVED " + first_id + " 5\r\nhello");
  ASSERT_TRUE(socket.send("stats-job " + first_id + "\r\n"));
  std::string stats;
  while (stats.find("kicks: 0\n") == std::string::npos) {
    const std::string byte = socket.read(1);
    ASSERT_FALSE(byte.empty()) << stats;
    stats += byte;
  }
  EXPECT_NE(stats.find("reserves: 2\n"), std::string::npos)
      << "the one that was released, and the one now" << stats;
  EXPECT_NE(stats.find("releases: 1\n"), std::string::npos) << stats;
  EXPECT_EQ(socket.read(2), "\r\n");
  expect(socket, "delete " + first_id, "DELETED");
  expect(socket, "reserve", "RESERVED 512 5\r\nworld");
  EXPECT_EQ(server_.stop(), 0);
}

TEST_F(BeanstalkProcess, SigusrOneDrains) {
  ASSERT_TRUE(server_.start());
  test::RawSocket socket(server_.beanstalk_port());
  expect(socket, "put 0 0 60 1\r\nx", "INSERTED 256");
  server_.signal(SIGUSR1);
  // Another thread handles the signal, so the effect can come a little later.
  std::string reply;
  while (!reply.starts_with("DRAINING")) {
    reply = ask(socket, "put 0 0 60 1\r\nx", "DRAINING");
    if (reply.starts_with("INSERTED")) {
      while (!reply.ends_with("\r\n")) reply += socket.read(1);
    }
    ASSERT_FALSE(reply.empty());
  }
  expect(socket, "reserve", "RESERVED 256 1\r\nx");
  EXPECT_EQ(server_.stop(), 0);
}

}  // namespace
}  // namespace detent
