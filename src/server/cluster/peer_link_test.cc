// The link between nodes: the requests that a node sends, and the requests that it accepts.
#include "server/cluster/peer_link.h"

#include <gtest/gtest.h>

#include <utility>

#include "server/testing/one_shard_fixture.h"

namespace detent::server {
namespace {

net::HttpRequest request_with(net::HttpHeaders headers) {
  return {.method = "GET", .target = "/", .headers = std::move(headers), .body = {}};
}

TEST(PeerLink, ShowsTheSecretToTheNodeAndAsksItWhatIsToBeAsked) {
  FakeCaller caller;
  const PeerLink link({.scheme = "https", .secret = "s"}, caller);
  int answers = 0;
  const Result<PeerLink::CallNumber> number =
      link.call("[::1]:7070",
                {.method = "POST", .target = "/v1/a?b=c", .headers = {{"x", "y"}}, .body = "{}"},
                [&](const net::CallOutcome&) { ++answers; });
  ASSERT_TRUE(number);
  ASSERT_EQ(caller.calls.size(), 1u);
  const FakeCaller::Call& call = caller.calls[0];
  EXPECT_EQ(call.scheme, net::HttpUrl::Scheme::https);
  EXPECT_EQ(call.address, "::1:7070");
  EXPECT_EQ(call.request.method, "POST");
  EXPECT_EQ(call.request.target, "/v1/a?b=c");
  EXPECT_EQ(call.request.body, "{}");
  EXPECT_EQ(call.request.headers, (net::HttpHeaders{{"x", "y"}, {"detent-cluster", "s"}}));
  caller.answer(0, {.status = 200});
  EXPECT_EQ(answers, 1);
  link.abandon(*number);
  EXPECT_TRUE(call.is_abandoned);
}

TEST(PeerLink, AnInvalidAddressIsNotCalled) {
  FakeCaller caller;
  const PeerLink link({.secret = "s"}, caller);
  int answers = 0;
  const auto count = [&](const net::CallOutcome&) { ++answers; };
  EXPECT_FALSE(link.call("a host:0", request_with({}), count));
  EXPECT_TRUE(caller.calls.empty());
  EXPECT_EQ(answers, 0);
}

TEST(PeerLink, AcceptsOnlyRequestsWithTheSecret) {
  FakeCaller caller;
  const PeerLink link({.secret = "s"}, caller);
  EXPECT_TRUE(link.is_of_cluster(request_with({{"detent-cluster", "s"}})));
  for (const std::string_view shown : {"", "t", "ss", "S"}) {
    EXPECT_FALSE(link.is_of_cluster(request_with({{"detent-cluster", std::string(shown)}})));
  }
  EXPECT_FALSE(link.is_of_cluster(request_with({{"authorization", "s"}})));
}

}  // namespace
}  // namespace detent::server
