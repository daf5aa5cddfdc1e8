// The first and the last address of every block in the registries, and the addresses next to them.
// webhook_calls_test.cc tests the guard with a real caller.
#include "delivery/address_guard.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace detent {
namespace {

using net::IpAddress;

bool allows(const AddressGuard& guard, const std::string& address, std::uint16_t port = 443) {
  const auto parsed = IpAddress::parse(address);
  EXPECT_TRUE(parsed) << address;
  return parsed && guard.check(*parsed, port).has_value();
}

struct BlockCase {
  const char* first;
  const char* last;
};

TEST(AddressGuard, RefusesEverySpecialBlockFromEndToEnd) {
  const AddressGuard guard;
  for (const auto& [first, last] : {
           BlockCase{"0.0.0.0", "0.255.255.255"},
           BlockCase{"10.0.0.0", "10.255.255.255"},
           BlockCase{"100.64.0.0", "100.127.255.255"},
           BlockCase{"127.0.0.0", "127.255.255.255"},
           BlockCase{"169.254.0.0", "169.254.255.255"},
           BlockCase{"172.16.0.0", "172.31.255.255"},
           BlockCase{"192.0.0.0", "192.0.0.255"},
           BlockCase{"192.0.2.0", "192.0.2.255"},
           BlockCase{"192.31.196.0", "192.31.196.255"},
           BlockCase{"192.52.193.0", "192.52.193.255"},
           BlockCase{"192.88.99.0", "192.88.99.255"},
           BlockCase{"192.168.0.0", "192.168.255.255"},
           BlockCase{"192.175.48.0", "192.175.48.255"},
           BlockCase{"198.18.0.0", "198.19.255.255"},
           BlockCase{"198.51.100.0", "198.51.100.255"},
           BlockCase{"203.0.113.0", "203.0.113.255"},
           BlockCase{"224.0.0.0", "239.255.255.255"},
           BlockCase{"240.0.0.0", "255.255.255.255"},
           BlockCase{"::", "::1"},
           BlockCase{"::7f00:1", "::a00:1"},                    // v4-compatible
           BlockCase{"64:ff9b:1::", "64:ff9b:1:ffff::"},        // local NAT64
           BlockCase{"100::", "100::ffff:ffff:ffff:ffff"},      // discard
           BlockCase{"1fff::", "1fff:ffff::"},                  // below global unicast
           BlockCase{"2001::", "2001:1ff:ffff::"},              // Teredo and others
           BlockCase{"2001:db8::", "2001:db8:ffff::"},          // documentation
           BlockCase{"2002::", "2002:ffff::"},                  // 6to4
           BlockCase{"2620:4f:8000::", "2620:4f:8000:ffff::"},  // AS112
           BlockCase{"3fff::", "3fff:fff:ffff::"},              // documentation
           BlockCase{"4000::", "5f00::1"},                      // above global unicast
           BlockCase{"fc00::", "fdff:ffff::"},                  // unique local
           BlockCase{"fe80::", "febf:ffff::"},                  // link-local
           BlockCase{"fec0::", "feff:ffff::"},                  // site-local
           BlockCase{"ff00::", "ffff:ffff::"},                  // multicast
       }) {
    EXPECT_FALSE(allows(guard, first)) << first;
    EXPECT_FALSE(allows(guard, last)) << last;
  }
}

TEST(AddressGuard, AllowsThePublicAddressesNextToThem) {
  const AddressGuard guard;
  for (const char* address :
       {"1.0.0.0",         "8.8.8.8",         "9.255.255.255",   "11.0.0.0",
        "100.63.255.255",  "100.128.0.0",     "126.255.255.255", "128.0.0.0",
        "169.253.255.255", "169.255.0.0",     "172.15.255.255",  "172.32.0.0",
        "191.255.255.255", "192.0.1.0",       "192.0.3.0",       "192.88.98.255",
        "192.167.255.255", "192.169.0.0",     "198.17.255.255",  "198.20.0.0",
        "198.51.99.255",   "203.0.112.255",   "203.0.114.0",     "223.255.255.255",
        "2000::1",         "2001:200::",      "2001:db7:ffff::", "2001:db9::",
        "2003::",          "2606:4700::1111", "3ffe:ffff::",     "3fff:1000::"}) {
    EXPECT_TRUE(allows(guard, address)) << address;
  }
}

TEST(AddressGuard, ChecksTheAddressInsideAnotherAddress) {
  const AddressGuard guard;
  for (const char* prefix : {"::ffff:", "64:ff9b::"}) {
    for (const char* inside : {"127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0"}) {
      EXPECT_FALSE(allows(guard, std::string(prefix) + inside)) << prefix << inside;
    }
    EXPECT_TRUE(allows(guard, std::string(prefix) + "8.8.8.8")) << prefix;
  }
  const AddressGuard with_lan = AddressGuard::parse("10.0.0.0/8").value();
  EXPECT_TRUE(allows(with_lan, "::ffff:10.0.0.1"));
  EXPECT_FALSE(allows(with_lan, "::ffff:127.0.0.1"));
}

TEST(AddressGuard, AlsoAllowsTheBlocksOfTheOperator) {
  const AddressGuard guard = AddressGuard::parse("10.1.0.0/16,fd00::/8,192.168.1.7").value();
  EXPECT_TRUE(allows(guard, "10.1.255.255", 22));
  EXPECT_TRUE(allows(guard, "fd12::1", 8080));
  EXPECT_TRUE(allows(guard, "192.168.1.7"));
  EXPECT_TRUE(allows(guard, "8.8.8.8"));
  EXPECT_FALSE(allows(guard, "10.2.0.0"));
  EXPECT_FALSE(allows(guard, "fc00::1"));
  EXPECT_FALSE(allows(guard, "192.168.1.8"));
}

TEST(AddressGuard, RefusesPortsOfOtherProtocols) {
  const AddressGuard guard;
  for (const auto port : std::to_array<std::uint16_t>({80, 443, 1024, 8080, 65535})) {
    EXPECT_TRUE(allows(guard, "8.8.8.8", port)) << port;
  }
  for (const auto port : std::to_array<std::uint16_t>({1, 22, 25, 79, 81, 442, 444, 1023})) {
    EXPECT_FALSE(allows(guard, "8.8.8.8", port)) << port;
  }
}

TEST(AddressGuard, ErrorsNameTheAddressAndTheReason) {
  const AddressGuard guard;
  EXPECT_EQ(guard.check(*IpAddress::parse("169.254.169.254"), 80).error().message,
            "169.254.169.254 is refused: link-local");
  EXPECT_EQ(guard.check(*IpAddress::parse("::ffff:10.0.0.1"), 80).error().message,
            "::ffff:10.0.0.1 is refused: private");
  EXPECT_EQ(guard.check(*IpAddress::parse("8.8.8.8"), 25).error().message,
            "port 25 is refused: below 1024 only 80 and 443 may be called");
}

TEST(AddressGuard, RefusesAWrongList) {
  for (const char* list : {"10.0.0.0/33", "localhost", "10.0.0.1/8", "10.0.0.0/8 ,::1", ",",
                           "10.0.0.0/8,,::1", "127.1", " "}) {
    const auto guard = AddressGuard::parse(list);
    ASSERT_FALSE(guard) << list;
    EXPECT_EQ(guard.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(guard.error().field, "webhook_allow");
  }
  EXPECT_TRUE(AddressGuard::parse(""));
}

}  // namespace
}  // namespace detent
