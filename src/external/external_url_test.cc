#include "external/external_url.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

RedisOptions parse_redis(std::string_view url) {
  return std::get<RedisOptions>(parse_external_url(url).value());
}

TEST(ExternalUrl, ReadsHostPortDatabaseNameAndLogIn) {
  const RedisOptions plain = parse_redis("redis://127.0.0.1:6379");
  EXPECT_EQ(plain.address, "127.0.0.1:6379");
  EXPECT_EQ(plain.password, "");
  EXPECT_EQ(plain.database, 0U);
  EXPECT_EQ(plain.name, RedisOptions{}.name);
  EXPECT_EQ(plain.durability, RedisDurability::required);

  const RedisOptions full = parse_redis("redis://ada:s%40c/r?t@[::1]:7000/3?name=mail");
  EXPECT_EQ(full.address, "[::1]:7000");
  EXPECT_EQ(full.user, "ada");
  EXPECT_EQ(full.password, "s@c/r?t");
  EXPECT_EQ(full.database, 3U);
  EXPECT_EQ(full.name, "mail");

  EXPECT_EQ(parse_redis("redis://:a@b@h:1").password, "a@b");
  const RedisOptions default_user = parse_redis("redis://:secret@db:1/");
  EXPECT_EQ(default_user.user, "");
  EXPECT_EQ(default_user.password, "secret");
  EXPECT_EQ(default_user.address, "db:1");
}

TEST(ExternalUrl, ReadsASocketAndItsName) {
  const RedisOptions options = parse_redis("redis+unix:///run/redis@1.sock?name=n");
  EXPECT_EQ(options.address, "/run/redis@1.sock");
  EXPECT_EQ(options.name, "n");
}

TEST(ExternalUrl, ReadsADetentServerAndItsQueue) {
  const auto remote = [](std::string_view url) {
    return std::get<RemoteDetentOptions>(parse_external_url(url).value());
  };
  EXPECT_EQ(remote("http://far:8080").url, "http://far:8080");
  EXPECT_EQ(remote("http://far:8080").queue, "detent-external");
  EXPECT_EQ(remote("http://[::1]:8080?queue=mail").url, "http://[::1]:8080");
  EXPECT_EQ(remote("http://[::1]:8080?queue=mail").queue, "mail");
  EXPECT_EQ(remote("http://[::1]:8080").token, "");
  const RemoteDetentOptions full = remote("https://dt_a-b_1@far:8443?queue=mail&ca=/etc/my@ca.pem");
  EXPECT_EQ(full.url, "https://far:8443");
  EXPECT_EQ(full.token, "dt_a-b_1");
  EXPECT_EQ(full.queue, "mail");
  EXPECT_EQ(full.ca_file, "/etc/my@ca.pem");
}

TEST(ExternalUrl, RefusesWrongUrlsWithoutRepeatingThePassword) {
  for (const char* url :
       {"", "rediss://h:1", "127.0.0.1:6379", "redis://secret@h:1", "redis://:secret%4@h:1",
        "redis://:secret%zz@h:1", "redis://h:1/x", "redis://h:1?db=3", "redis+unix://run/redis",
        "http://@h:1", "https://secret\r\nX: y@h:1", "https://ada:secret@h:1", "http://h:1?name=n",
        "http://h:1?queue=q&name=n"}) {
    const Result<ExternalOptions> options = parse_external_url(url);
    ASSERT_FALSE(options) << url;
    EXPECT_EQ(options.error().code, ErrorCode::invalid_argument) << url;
    EXPECT_EQ(options.error().message.find("secret"), std::string::npos) << options.error().message;
  }
}

}  // namespace
}  // namespace detent
