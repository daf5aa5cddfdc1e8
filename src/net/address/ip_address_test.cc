#include "net/address/ip_address.h"

#include <gtest/gtest.h>

namespace detent::net {
namespace {

using namespace std::string_literals;

TEST(IpAddress, ReadsBothFamiliesAndWritesThemBack) {
  for (const char* text : {"0.0.0.0", "192.0.2.1", "255.255.255.255", "::", "::1", "2001:db8::1",
                           "::ffff:127.0.0.1", "fe80::1:2"}) {
    const auto address = IpAddress::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(to_string(*address), text);
  }
  EXPECT_EQ(to_string(*IpAddress::parse("2001:DB8:0:0:0:0:0:1")), "2001:db8::1");
  EXPECT_NE(*IpAddress::parse("::1"), *IpAddress::parse("0.0.0.1"));
}

TEST(IpAddress, RefusesAllOtherSpellings) {
  for (const std::string& text : {""s,
                                  "127.1"s,
                                  "2130706433"s,
                                  "0x7f.0.0.1"s,
                                  "0x7f000001"s,
                                  "017700000001"s,
                                  "127.0.0.01"s,
                                  "0177.0.0.1"s,
                                  "127.0.0.1."s,
                                  " 127.0.0.1"s,
                                  "127.0.0.1 "s,
                                  "127.0.0.256"s,
                                  "1.2.3.4.5"s,
                                  "[::1]"s,
                                  "fe80::1%eth0"s,
                                  "::1%1"s,
                                  ":::"s,
                                  "1::2::3"s,
                                  "12345::"s,
                                  "::127.1"s,
                                  "::1/128"s,
                                  "127.0.0.1\0x"s,
                                  "a"s}) {
    EXPECT_FALSE(IpAddress::parse(text)) << text;
  }
}

TEST(IpAddress, ReturnsTheV4AddressInTheLast32Bits) {
  EXPECT_EQ(to_string(IpAddress::parse("::ffff:10.1.2.3")->embedded_v4()), "10.1.2.3");
  EXPECT_EQ(to_string(IpAddress::parse("64:ff9b::7f00:1")->embedded_v4()), "127.0.0.1");
}

TEST(IpBlock, ContainsOnlyAddressesWithItsPrefix) {
  struct Case {
    const char* block;
    const char* inside;
    const char* outside;
  };
  for (const auto& [block, inside, outside] : {
           Case{"10.0.0.0/8", "10.255.255.255", "11.0.0.0"},
           Case{"172.16.0.0/12", "172.31.255.255", "172.32.0.0"},
           Case{"100.64.0.0/10", "100.127.255.255", "100.128.0.0"},
           Case{"192.0.2.7", "192.0.2.7", "192.0.2.6"},
           Case{"0.0.0.0/0", "255.255.255.255", "::"},
           Case{"fc00::/7", "fdff::1", "fe00::"},
           Case{"2001::/23", "2001:1ff:ffff::", "2001:200::"},
           Case{"::1", "::1", "::"},
           Case{"::/0", "ffff::", "0.0.0.0"},
       }) {
    const auto parsed = IpBlock::parse(block);
    ASSERT_TRUE(parsed) << block;
    EXPECT_TRUE(parsed->contains(*IpAddress::parse(inside))) << block;
    EXPECT_FALSE(parsed->contains(*IpAddress::parse(outside))) << block;
  }
}

TEST(IpBlock, RefusesTextThatIsNotABlock) {
  for (const char* text : {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x",
                           "10.0.0.1/8", "::1/64", "::/129", "10.0.0.0/08x", "localhost/8"}) {
    EXPECT_FALSE(IpBlock::parse(text)) << text;
  }
}

}  // namespace
}  // namespace detent::net
