// A webhook's URL must not reach the internal network. The tests use the real caller with the guard
// of the server. A listener on all loopback addresses counts connections.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "delivery/address_guard.h"
#include "delivery/verdict.h"
#include "net/testing/http_caller_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using net::CallFailure;
using net::CallStep;

/// Replaces PORT in a URL by the port of the listener.
std::string with_port(std::string url, const net::CountingListener& listener) {
  const std::size_t at = url.find("PORT");
  return at == std::string::npos ? url : url.replace(at, 4, std::to_string(listener.port()));
}

net::AddressFilter filter_of(AddressGuard guard) {
  return [guard = std::move(guard)](const net::IpAddress& address, std::uint16_t port) {
    return guard.check(address, port);
  };
}

/// Adds the names of an attacker's domain, with the addresses that they resolve to.
void add_names(net::ScriptedResolver& resolver) {
  resolver.add("localhost", {"127.0.0.1", "::1"});
  resolver.add("localhost.localdomain", {"127.0.0.1"});
  resolver.add("ip6-localhost", {"::1"});
  resolver.add("loopback.test", {"127.0.0.1"});
  resolver.add("loopback6.test", {"::1"});
  resolver.add("any.test", {"0.0.0.0"});
  resolver.add("any6.test", {"::"});
  resolver.add("mapped.test", {"::ffff:127.0.0.1"});
  resolver.add("compatible.test", {"::127.0.0.1"});
  resolver.add("private.test", {"10.0.0.1"});
  resolver.add("metadata.test", {"169.254.169.254"});
  resolver.add("carrier.test", {"100.64.0.1"});
  resolver.add("local6.test", {"fd00::1"});
  resolver.add("link6.test", {"fe80::1"});
  resolver.add("nat64.test", {"64:ff9b::127.0.0.1"});
  resolver.add("6to4.test", {"2002:7f00:1::"});
  resolver.add("teredo.test", {"2001:0:7f00:1::"});
  resolver.add("multicast.test", {"224.0.0.1"});
  resolver.add("first-bad.test", {"127.0.0.1", "8.8.8.8"});
  resolver.add("last-bad.test", {"8.8.8.8", "1.1.1.1", "127.0.0.1"});
  resolver.add("last-bad6.test", {"2606:4700::1111", "::1"});
  resolver.add("fifth-bad.test", {"8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "127.0.0.1"});
  resolver.add("127.0.0.1.nip.test", {"127.0.0.1"});
  resolver.add("7f000001.test", {"127.0.0.1"});
}

/// Each of these is an address of this machine, or a spelling of one.
std::vector<std::string> inside_urls() {
  return {// As they are meant to be written.
          "http://127.0.0.1:PORT/", "https://127.0.0.1:PORT/", "http://127.0.0.2:PORT/",
          "http://127.255.255.254:PORT/", "http://0.0.0.0:PORT/", "http://0.1.2.3:PORT/",
          "http://10.0.0.1:PORT/", "http://172.16.0.1:PORT/", "http://172.31.255.255:PORT/",
          "http://192.168.0.1:PORT/", "http://100.64.0.1:PORT/", "http://169.254.169.254/latest/",
          "http://169.254.170.2/v2/credentials", "http://192.0.0.192/", "http://192.0.2.1:PORT/",
          "http://198.18.0.1:PORT/", "http://198.51.100.1:PORT/", "http://203.0.113.1:PORT/",
          "http://224.0.0.1:PORT/", "http://239.255.255.250:PORT/", "http://240.0.0.1:PORT/",
          "http://255.255.255.255:PORT/", "http://192.88.99.1:PORT/", "http://[::1]:PORT/",
          "https://[::1]:PORT/", "http://[::]:PORT/", "http://[0:0:0:0:0:0:0:1]:PORT/",
          "http://[0000::0001]:PORT/", "http://[::ffff:127.0.0.1]:PORT/",
          "http://[::ffff:7f00:1]:PORT/", "http://[::FFFF:7F00:1]:PORT/",
          "http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/", "http://[::ffff:0:127.0.0.1]:PORT/",
          "http://[::127.0.0.1]:PORT/", "http://[64:ff9b::7f00:1]:PORT/",
          "http://[64:ff9b:1::7f00:1]:PORT/", "http://[2002:7f00:1::]:PORT/",
          "http://[2001:0:7f00:1::]:PORT/", "http://[100::1]:PORT/", "http://[fc00::1]:PORT/",
          "http://[fd00:ec2::254]/latest/", "http://[fe80::1]:PORT/", "http://[fec0::1]:PORT/",
          "http://[ff02::1]:PORT/", "http://[2001:db8::1]:PORT/",
          // Spellings that other parsers of URLs and addresses accept.
          "http://2130706433:PORT/", "http://017700000001:PORT/", "http://0x7f000001:PORT/",
          "http://0x7f.1:PORT/", "http://0X7F.0.0.1:PORT/", "http://0177.0.0.1:PORT/",
          "http://0177.0x0.0.1:PORT/", "http://127.1:PORT/", "http://127.0.1:PORT/",
          "http://127.0.0.01:PORT/", "http://127.0.0.1.:PORT/", "http://0:PORT/", "http://00:PORT/",
          "http://127.0.0.1%00.test:PORT/", "http://%31%32%37.0.0.1:PORT/",
          "http://[::1%25lo]:PORT/", "http://[fe80::1%25eth0]:PORT/", "http://[::1%lo]:PORT/",
          "http://[::ffff:127.1]:PORT/", "http://[127.0.0.1]:PORT/", "http://::1:PORT/",
          "http://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1:PORT/",
          "http://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1:PORT/",
          "http://127\xe3\x80\x82"
          "0\xe3\x80\x82"
          "0\xe3\x80\x82"
          "1:PORT/",
          // URLs whose real host is not the apparent one.
          "http://good.test@127.0.0.1:PORT/", "http://127.0.0.1:PORT@loopback.test:PORT/",
          "http://good.test\\@127.0.0.1:PORT/", "http://127.0.0.1:PORT#@good.test/",
          "http://127.0.0.1:PORT\\.good.test/", "http://good.test#@127.0.0.1:PORT/",
          "http:127.0.0.1:PORT/", "http:/127.0.0.1:PORT/", "http:///127.0.0.1:PORT/",
          "//127.0.0.1:PORT/", "gopher://127.0.0.1:PORT/", "file:///etc/passwd",
          "http://127.0.0.1:PORT\r\nHost: good.test/", " http://127.0.0.1:PORT/",
          "http://\t127.0.0.1:PORT/",
          // Names, in various cases and with dots.
          "http://localhost:PORT/", "http://LOCALHOST:PORT/", "http://LocalHost:PORT/",
          "http://localhost.:PORT/", "http://localhost.localdomain:PORT/",
          "http://ip6-localhost:PORT/", "http://loopback.test:PORT/", "HTTP://LOOPBACK.TEST:PORT/",
          "http://loopback6.test:PORT/", "http://any.test:PORT/", "http://any6.test:PORT/",
          "http://mapped.test:PORT/", "http://compatible.test:PORT/", "http://private.test:PORT/",
          "http://metadata.test/latest/meta-data/", "http://carrier.test:PORT/",
          "http://local6.test:PORT/", "http://link6.test:PORT/", "http://nat64.test:PORT/",
          "http://6to4.test:PORT/", "http://teredo.test:PORT/", "http://multicast.test:PORT/",
          "http://first-bad.test:PORT/", "http://last-bad.test:PORT/",
          "http://last-bad6.test:PORT/", "http://fifth-bad.test:PORT/",
          "http://127.0.0.1.nip.test:PORT/", "http://7f000001.test:PORT/"};
}

TEST(WebhookCalls, DoNotReachTheInternalNetwork) {
  const net::CountingListener inside;
  net::ScriptedResolver resolver;
  add_names(resolver);
  net::CallerRig rig(resolver, {}, filter_of(AddressGuard()));
  const std::vector<std::string> urls = inside_urls();
  ASSERT_GE(urls.size(), 100u);
  for (const std::string& url : urls) {
    const net::CallOutcome outcome = rig.call(with_port(url, inside));
    const CallFailure failure = net::failure_of(outcome);
    EXPECT_EQ(failure.step, CallStep::filter) << url << ": " << failure.message;
    EXPECT_EQ(inside.count_connects(), 0) << url;
    // The task is dead immediately, so it is not tried again.
    EXPECT_EQ(judge(outcome, {}).verb, Verdict::Verb::bury) << url;
  }
}

/// Shows that the listener counts connections if the guard allows them.
TEST(WebhookCalls, ReachAddressesThatTheOperatorHasAllowed) {
  const net::CountingListener inside;
  net::ScriptedResolver resolver;
  add_names(resolver);
  net::CallerRig rig(resolver, {.answer_timeout = 5ms},
                     filter_of(AddressGuard::parse("127.0.0.0/8,::1").value()));
  for (const char* url : {"http://127.0.0.1:PORT/", "http://[::ffff:127.0.0.1]:PORT/",
                          "http://localhost:PORT/", "http://loopback.test:PORT/"}) {
    EXPECT_EQ(net::failure_of(rig.call(with_port(url, inside))).step, CallStep::exchange) << url;
    EXPECT_EQ(inside.count_connects(), 1) << url;
  }
}

TEST(WebhookCalls, AreNotReboundByASecondLookUp) {
  const net::CountingListener inside;
  net::ScriptedResolver resolver;
  resolver.add("rebind.test", {"127.0.0.2"});  // the checked address; allowed, without a listener
  resolver.add("rebind.test", {"127.0.0.1"});  // the answer to a second look-up
  net::CallerRig rig(resolver, {}, filter_of(AddressGuard::parse("127.0.0.2").value()));
  const std::string url = with_port("http://rebind.test:PORT/", inside);
  EXPECT_EQ(net::failure_of(rig.call(url)).step, CallStep::connect);
  EXPECT_EQ(resolver.asked(), 1);
  EXPECT_EQ(inside.count_connects(), 0);
  // The next call resolves the name again, and checks the new address.
  EXPECT_EQ(net::failure_of(rig.call(url)).step, CallStep::filter);
  EXPECT_EQ(inside.count_connects(), 0);
}

TEST(WebhookCalls, FollowNoRedirectInside) {
  const net::CountingListener inside;
  const auto outside = net::start_server(
      [&inside](const net::HttpRequest& request, const net::Responder& responder) {
        const int status = std::stoi(request.target.substr(1));
        net::HttpResponse answer = net::text("", status);
        answer.headers = {{"Location", with_port("http://127.0.0.1:PORT/", inside)},
                          {"Refresh", with_port("0; url=http://127.0.0.1:PORT/", inside)},
                          {"Alt-Svc", with_port("h2=\"127.0.0.1:PORT\"", inside)}};
        responder.send(answer);
      });
  net::ScriptedResolver resolver;
  net::CallerRig rig(resolver, {}, filter_of(AddressGuard::parse("127.0.0.0/8").value()));
  for (const int status : {201, 300, 301, 302, 303, 305, 307, 308}) {
    const auto outcome = rig.call("http://127.0.0.1:" + std::to_string(outside->port()) + "/" +
                                  std::to_string(status));
    EXPECT_EQ(net::answer_of(outcome).status, status);
    const bool is_done = judge(outcome, {}).verb == Verdict::Verb::complete;
    EXPECT_EQ(is_done, status == 201);
    EXPECT_EQ(inside.count_connects(), 0) << status;
  }
}

}  // namespace
}  // namespace detent
