// The system's resolver, with names that every machine knows: localhost, and addresses as text.
#include "net/address/host_resolver.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "net/testing/http_server_fixture.h"

namespace detent::net {
namespace {

using Found = Result<std::vector<IpAddress>>;

Found resolve(HostResolver& resolver, const std::string& host) {
  Mailbox<Found> found;
  resolver.resolve(host, [&found](Found addresses) { found.push(std::move(addresses)); });
  return found.pop();
}

TEST(SystemResolver, FindsLocalhost) {
  SystemResolver resolver;
  const Found found = resolve(resolver, "localhost");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(std::ranges::any_of(*found, [](const IpAddress& address) {
    return to_string(address) == "127.0.0.1" || to_string(address) == "::1";
  }));
}

TEST(SystemResolver, ReadsAddressesOfBothFamilies) {
  SystemResolver resolver;
  for (const char* text : {"192.0.2.1", "2001:db8::1"}) {
    const Found found = resolve(resolver, text);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->size(), 1u);
    EXPECT_EQ(to_string(found->front()), text);
  }
}

TEST(SystemResolver, ReportsAnUnknownName) {
  SystemResolver resolver;
  // A label of 64 bytes is too long, so no name server is asked.
  EXPECT_FALSE(resolve(resolver, std::string(64, 'a') + ".invalid"));
}

TEST(SystemResolver, AnswersEachQuestionOnceAlsoAboveItsThreadLimit) {
  SystemResolver resolver;
  Mailbox<std::string> found;
  constexpr int kHosts = 3 * static_cast<int>(SystemResolver::kMaxLookUps);
  for (int i = 0; i < 2 * kHosts; ++i) {
    const std::string host = "192.0.2." + std::to_string(i % kHosts);
    resolver.resolve(host, [&found, host](Found addresses) {
      found.push(addresses && to_string(addresses->front()) == host ? host : "");
    });
  }
  std::vector<int> answers(kHosts, 0);
  for (int i = 0; i < 2 * kHosts; ++i) {
    const std::string host = found.pop();
    ASSERT_FALSE(host.empty());
    ++answers[std::stoul(host.substr(8))];
  }
  EXPECT_EQ(answers, std::vector<int>(kHosts, 2));
}

TEST(SystemResolver, CanBeDestroyedDuringALookUp) {
  const auto told = std::make_shared<Mailbox<bool>>();
  SystemResolver().resolve("localhost", [told](const Found&) { told->push(true); });
  // The first resolver may or may not have called back. Its destructor must not wait.
  SystemResolver other;
  EXPECT_TRUE(resolve(other, "127.0.0.1"));
}

}  // namespace
}  // namespace detent::net
