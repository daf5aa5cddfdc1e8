// A table of accepted and refused URLs.
#include "net/message/http_url.h"

#include <gtest/gtest.h>

#include <string>

namespace detent::net {
namespace {

using namespace std::string_literals;

TEST(HttpUrl, ReadsItsParts) {
  const HttpUrl url = parse_http_url("https://Example.COM:8443/a/b?c=d&e=%20").value();
  EXPECT_EQ(url.scheme, HttpUrl::Scheme::https);
  EXPECT_EQ(url.host, "example.com");
  EXPECT_FALSE(url.address);
  EXPECT_EQ(url.port, 8443);
  EXPECT_EQ(url.target, "/a/b?c=d&e=%20");
  EXPECT_EQ(url.authority, "example.com:8443");
}

TEST(HttpUrl, FillsInDefaults) {
  EXPECT_EQ(parse_http_url("HTTPS://a.b")->port, 443);
  EXPECT_EQ(parse_http_url("hTTp://a.b")->port, 80);
  EXPECT_EQ(parse_http_url("http://a.b:80")->authority, "a.b");
  EXPECT_EQ(parse_http_url("http://a.b:443")->authority, "a.b:443");
  EXPECT_EQ(parse_http_url("http://a.b")->target, "/");
  EXPECT_EQ(parse_http_url("http://a.b?c")->target, "/?c");
}

TEST(HttpUrl, DistinguishesAddressesFromNames) {
  EXPECT_EQ(to_string(*parse_http_url("http://192.0.2.1/")->address), "192.0.2.1");
  const HttpUrl v6 = parse_http_url("http://[2001:DB8::1]:81/").value();
  EXPECT_EQ(to_string(*v6.address), "2001:db8::1");
  EXPECT_EQ(v6.host, "2001:db8::1");
  EXPECT_EQ(v6.authority, "[2001:db8::1]:81");
  for (const char* name : {"localhost", "a-b.c_d", "1a.2b", "1.2.3.4.com", "0x.a", "x0"}) {
    const auto url = parse_http_url("http://" + std::string(name) + "/");
    ASSERT_TRUE(url) << name << ": " << url.error().message;
    EXPECT_FALSE(url->address) << name;
  }
}

TEST(HttpUrl, RefusesAmbiguousUrls) {
  for (const std::string& text : {""s,
                                  "example.com"s,
                                  "//example.com/"s,
                                  "ftp://a/"s,
                                  "file:///etc/passwd"s,
                                  "http:/a"s,
                                  "http:///a"s,
                                  "http://"s,
                                  "http://:80/"s,
                                  "http://user@a/"s,
                                  "http://user:pass@a/"s,
                                  "http://a@b@c/"s,
                                  "http://a#b"s,
                                  "http://a/b#c"s,
                                  "http://a\\b/"s,
                                  "http://a b/"s,
                                  "http://a/b c"s,
                                  "http://a\r\nX: y/"s,
                                  "http://a\0b/"s,
                                  "http://\xc3\xa4.de/"s,
                                  "http://a:0/"s,
                                  "http://a:65536/"s,
                                  "http://a:/"s,
                                  "http://a:80x/"s,
                                  "http://a:-1/"s,
                                  "http://a:+80/"s,
                                  "http://a:80:90/"s,
                                  "http://a../"s,
                                  "http://a./"s,
                                  "http://.a/"s,
                                  "http://a..b/"s,
                                  "http://127.1/"s,
                                  "http://2130706433/"s,
                                  "http://0x7f000001/"s,
                                  "http://0x7f.1/"s,
                                  "http://0X7F.0.0.1/"s,
                                  "http://0177.0.0.1/"s,
                                  "http://127.0.0.01/"s,
                                  "http://127.0.0.1./"s,
                                  "http://127.0.0.1.1/"s,
                                  "http://a.1/"s,
                                  "http://a.0x1f/"s,
                                  "http://a.0x/"s,
                                  "http://%31%32%37.0.0.1/"s,
                                  "http://a%2eb/"s,
                                  "http://[::1/"s,
                                  "http://::1/"s,
                                  "http://[::1]x/"s,
                                  "http://[::1]x:80/"s,
                                  "http://[127.0.0.1]/"s,
                                  "http://[fe80::1%25eth0]/"s,
                                  "http://[fe80::1%eth0]/"s,
                                  "http://[a]/"s,
                                  "http://[]/"s,
                                  "http://a,b/"s,
                                  "http://(a)/"s,
                                  "http://a;b/"s,
                                  "http://" + std::string(64, 'a') + ".com/",
                                  "http://a/" + std::string(2'048, 'b')}) {
    const auto url = parse_http_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, ErrorCode::invalid_argument);
    EXPECT_TRUE(url.error().message.starts_with("the URL ")) << url.error().message;
  }
}

}  // namespace
}  // namespace detent::net
