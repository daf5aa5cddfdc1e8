#include "net/address/address_counts.h"

#include <gtest/gtest.h>

#include <vector>

namespace detent::net {
namespace {

AddressCounts::Ticket take(AddressCounts& counts, const char* address) {
  return counts.take(boost::asio::ip::make_address(address));
}

TEST(AddressCounts, EachAddressIsCountedAloneUntilItsTicketsGo) {
  AddressCounts counts;
  const AddressCounts::Ticket first = take(counts, "10.0.0.1");
  {
    const AddressCounts::Ticket second = take(counts, "10.0.0.1");
    EXPECT_EQ(second.count(), 2U);
    EXPECT_EQ(take(counts, "10.0.0.2").count(), 1U);
  }
  EXPECT_EQ(first.count(), 1U);
}

TEST(AddressCounts, AnIpv6NetworkIsOneClient) {
  AddressCounts counts;
  const AddressCounts::Ticket first = take(counts, "2001:db8:1:2::1");
  EXPECT_EQ(take(counts, "2001:db8:1:2:ffff::9").count(), 2U);
  EXPECT_EQ(take(counts, "2001:db8:1:3::1").count(), 1U);
}

TEST(AddressCounts, AnIpv4AddressIsTheSameHoweverItIsWritten) {
  AddressCounts counts;
  const AddressCounts::Ticket first = take(counts, "10.0.0.1");
  EXPECT_EQ(take(counts, "::ffff:10.0.0.1").count(), 2U);
}

TEST(AddressCounts, ATicketIsMovedAndCountedOnce) {
  AddressCounts counts;
  std::vector<AddressCounts::Ticket> tickets;
  for (int i = 0; i < 100; ++i) tickets.push_back(take(counts, "10.0.0.1"));
  EXPECT_EQ(tickets.back().count(), 100U);
  tickets.erase(tickets.begin(), tickets.begin() + 60);
  EXPECT_EQ(tickets.back().count(), 40U);
  tickets.clear();
  EXPECT_EQ(take(counts, "10.0.0.1").count(), 1U);
}

}  // namespace
}  // namespace detent::net
