#include "server/access/exposure.h"

#include <gtest/gtest.h>

#include <string>

namespace detent::server {
namespace {

constexpr const char* kPublic[] = {"0.0.0.0", "::",      "10.0.0.1",         "192.168.1.1",
                                   "8.8.8.8", "fe80::1", "::ffff:127.0.0.1", "128.0.0.1"};

cli::ServeOptions http_at(const std::string& host) {
  cli::ServeOptions options;
  options.http_host = host;
  return options;
}

cli::ServeOptions beanstalk_at(const std::string& host) {
  cli::ServeOptions options;
  options.beanstalk_host = host;
  return options;
}

TEST(Exposure, LoopbackNeedsNothing) {
  for (const char* host : {"127.0.0.1", "127.255.0.9", "::1"}) {
    EXPECT_TRUE(check_exposure(http_at(host))) << host;
    EXPECT_TRUE(check_exposure(beanstalk_at(host))) << host;
    EXPECT_TRUE(is_loopback(host)) << host;
  }
}

TEST(Exposure, HttpForOtherMachinesNeedsTokens) {
  for (const char* host : kPublic) {
    cli::ServeOptions options = http_at(host);
    EXPECT_FALSE(is_loopback(host)) << host;
    const Result<void> allowed = check_exposure(options);
    ASSERT_FALSE(allowed) << host;
    EXPECT_NE(allowed.error().message.find("--auth"), std::string::npos);
    options.auth = "tokens.toml";
    EXPECT_TRUE(check_exposure(options)) << host;
  }
}

TEST(Exposure, BeanstalkForOtherMachinesNeedsItsOwnFlagWhateverElseThereIs) {
  for (const char* host : kPublic) {
    cli::ServeOptions options = beanstalk_at(host);
    options.auth = "tokens.toml";
    const Result<void> allowed = check_exposure(options);
    ASSERT_FALSE(allowed) << host;
    EXPECT_NE(allowed.error().message.find("--beanstalk-public"), std::string::npos);
    options.beanstalk_public = true;
    EXPECT_TRUE(check_exposure(options)) << host;
  }
}

TEST(Exposure, TheFlagOfBeanstalkOpensNothingElse) {
  cli::ServeOptions options = http_at("0.0.0.0");
  options.beanstalk_public = true;
  EXPECT_FALSE(check_exposure(options));
}

TEST(Exposure, AnInvalidAddressIsRefused) {
  for (const char* host : {"", "localhost", "127.1", "127.0.0.1 ", "1.2.3.4.5"}) {
    cli::ServeOptions options = http_at(host);
    options.auth = "tokens.toml";
    EXPECT_FALSE(check_exposure(options)) << host;
  }
  EXPECT_TRUE(check_exposure(beanstalk_at("")));  // off
}

TEST(Exposure, OneAddressHasAtMostHalfOfTheConnectionsButOnLoopback) {
  EXPECT_EQ(max_connections_of_address("0.0.0.0"), 1'000u);
  EXPECT_EQ(max_connections_of_address("0.0.0.0", 298), 149u);
  EXPECT_EQ(max_connections_of_address("127.0.0.1", 298), 298u);
}

}  // namespace
}  // namespace detent::server
