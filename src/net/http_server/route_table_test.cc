#include "net/http_server/route_table.h"

#include <gtest/gtest.h>

namespace detent::net {
namespace {

RouteTable<int> table() {
  RouteTable<int> routes;
  routes.add("POST", "/v1/tasks", 1);
  routes.add("POST", "/v1/tasks/batch", 2);
  routes.add("GET", "/v1/tasks/{id}", 3);
  routes.add("DELETE", "/v1/tasks/{id}", 4);
  routes.add("POST", "/v1/queues/{queue}/lease", 5);
  routes.add("GET", "/", 6);
  return routes;
}

int handler_of(std::string_view method, std::string_view target) {
  const RouteTable<int> routes = table();
  const auto match = routes.find(method, target);
  return match && match->handler != nullptr ? *match->handler : 0;
}

TEST(RouteTable, AMethodAndPathHaveOneHandler) {
  EXPECT_EQ(handler_of("POST", "/v1/tasks"), 1);
  EXPECT_EQ(handler_of("POST", "/v1/tasks/batch"), 2);
  EXPECT_EQ(handler_of("GET", "/v1/tasks/256"), 3);
  EXPECT_EQ(handler_of("DELETE", "/v1/tasks/256"), 4);
  EXPECT_EQ(handler_of("POST", "/v1/queues/mail/lease?x=1"), 5);
  EXPECT_EQ(handler_of("GET", "/"), 6);
}

TEST(RouteTable, HeadIsAnsweredWhereGetIs) {
  EXPECT_EQ(handler_of("HEAD", "/v1/tasks/256"), 3);
  EXPECT_EQ(handler_of("HEAD", "/v1/tasks"), 0);
}

TEST(RouteTable, APathWithoutAPatternIsNotFound) {
  const RouteTable<int> routes = table();
  for (const char* target : {"", "*", "/v1", "/v1/", "/v1/tasks/", "/v1/tasks/1/2", "//", "/v1//",
                             "/v1/queues//lease", "/v1/tasks/%zz", "v1/tasks"}) {
    EXPECT_FALSE(routes.find("GET", target)) << target;
  }
}

TEST(RouteTable, AWrongMethodNamesTheOnesAllowed) {
  const RouteTable<int> routes = table();
  const auto match = routes.find("PUT", "/v1/tasks/1");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->handler, nullptr);
  EXPECT_EQ(match->allowed, "GET, HEAD, DELETE");
}

TEST(RouteTable, AFixedSegmentWinsOverAParameter) {
  const RouteTable<int> routes = table();
  const auto match = routes.find("GET", "/v1/tasks/batch");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->allowed, "POST");
}

TEST(RouteTable, ParametersAreDecoded) {
  const RouteTable<int> routes = table();
  const auto match = routes.find("POST", "/v1/queues/a%2Fb%3bc/lease");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->parameters, std::vector<std::string>{"a/b;c"});
}

}  // namespace
}  // namespace detent::net
