#include "server/exposure.h"

#include <gtest/gtest.h>

namespace detent::server {
namespace {

TEST(RequireLoopback, LoopbackIsAllowed) {
  for (const char* host : {"127.0.0.1", "127.255.0.9", "::1"}) {
    EXPECT_TRUE(require_loopback(host)) << host;
  }
}

TEST(RequireLoopback, WhatOtherMachinesReachIsRefusedAndSaid) {
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "192.168.1.1", "8.8.8.8", "fe80::1",
                           "::ffff:127.0.0.1", "128.0.0.1"}) {
    const Result<void> allowed = require_loopback(host);
    ASSERT_FALSE(allowed) << host;
    EXPECT_NE(allowed.error().message.find("no access control"), std::string::npos);
  }
}

TEST(RequireLoopback, WhatIsNoAddressIsRefused) {
  for (const char* host : {"", "localhost", "127.1", "127.0.0.1 ", "1.2.3.4.5"}) {
    EXPECT_FALSE(require_loopback(host)) << host;
  }
}

}  // namespace
}  // namespace detent::server
