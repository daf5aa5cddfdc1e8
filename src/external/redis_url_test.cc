#include "external/redis_url.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

TEST(RedisUrl, ReadsHostPortDatabaseNameAndLogIn) {
  const RedisOptions plain = parse_redis_url("redis://127.0.0.1:6379").value();
  EXPECT_EQ(plain.address, "127.0.0.1:6379");
  EXPECT_EQ(plain.password, "");
  EXPECT_EQ(plain.database, 0U);
  EXPECT_EQ(plain.name, RedisOptions{}.name);
  EXPECT_EQ(plain.durability, RedisDurability::required);

  const RedisOptions full = parse_redis_url("redis://ada:s%40c/r?t@[::1]:7000/3?name=mail").value();
  EXPECT_EQ(full.address, "[::1]:7000");
  EXPECT_EQ(full.user, "ada");
  EXPECT_EQ(full.password, "s@c/r?t");
  EXPECT_EQ(full.database, 3U);
  EXPECT_EQ(full.name, "mail");

  EXPECT_EQ(parse_redis_url("redis://:a@b@h:1").value().password, "a@b");
  const RedisOptions default_user = parse_redis_url("redis://:secret@db:1/").value();
  EXPECT_EQ(default_user.user, "");
  EXPECT_EQ(default_user.password, "secret");
  EXPECT_EQ(default_user.address, "db:1");
}

TEST(RedisUrl, ReadsASocketAndItsName) {
  const RedisOptions options = parse_redis_url("redis+unix:///run/redis@1.sock?name=n").value();
  EXPECT_EQ(options.address, "/run/redis@1.sock");
  EXPECT_EQ(options.name, "n");
}

TEST(RedisUrl, RefusesWhatIsNoneAndKeepsThePasswordToItself) {
  for (const char* url :
       {"", "rediss://h:1", "127.0.0.1:6379", "redis://secret@h:1", "redis://:secret%4@h:1",
        "redis://:secret%zz@h:1", "redis://h:1/x", "redis://h:1?db=3", "redis+unix://run/redis"}) {
    const Result<RedisOptions> options = parse_redis_url(url);
    ASSERT_FALSE(options) << url;
    EXPECT_EQ(options.error().code, ErrorCode::invalid_argument) << url;
    EXPECT_EQ(options.error().message.find("secret"), std::string::npos) << options.error().message;
  }
}

}  // namespace
}  // namespace detent
