#include "server/access/token_command.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "server/access/access_rules.h"

namespace detent::server {
namespace {

TEST(TokenCommand, PrintsATokenAndLinesThatKnowIt) {
  std::ostringstream out;
  std::ostringstream err;
  const cli::TokenOptions options{.name = "shop", .scopes = {"produce:orders.", "read"}};
  ASSERT_EQ(make_token(options, out, err), 0) << err.str();
  const std::string text = out.str();
  const auto rules = AccessRules::parse(text, "f");  // the token is in a comment
  ASSERT_TRUE(rules) << rules.error().message;
  const std::size_t at = text.find("dt_");
  ASSERT_NE(at, std::string::npos);
  const std::string token = text.substr(at, text.find('\n', at) - at);
  const Role* const role = rules->find(token);
  ASSERT_NE(role, nullptr);
  EXPECT_EQ(role->name, "shop");
  EXPECT_EQ(role->grants, (std::vector<Grant>{{Scope::produce, "orders."}, {Scope::read, ""}}));
}

TEST(TokenCommand, WhatCannotStandInTheFileIsRefused) {
  const cli::TokenOptions cases[] = {{.name = "shop", .scopes = {"write"}},
                                     {.name = "shop", .scopes = {"read", "admin:"}},
                                     {.name = "", .scopes = {"read"}},
                                     {.name = "a\"\nb", .scopes = {"read"}},
                                     {.name = std::string(101, 'a'), .scopes = {"read"}}};
  for (const cli::TokenOptions& options : cases) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(make_token(options, out, err), 2);
    EXPECT_EQ(out.str(), "");
    EXPECT_NE(err.str(), "");
  }
}

}  // namespace
}  // namespace detent::server
