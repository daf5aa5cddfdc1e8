#include "server/access/access_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace detent::server {
namespace {

std::string token_lines(const std::string& name, const std::string& token,
                        const std::string& scopes) {
  return "[[token]]\nname = \"" + name + "\"\nsha256 = \"" + to_hex(hash_token(token)) +
         "\"\nscopes = [" + scopes + "]\n";
}

Role role_with(std::vector<Grant> grants) {
  return {.name = "r", .hash = {}, .grants = std::move(grants)};
}

TEST(AccessRules, ATokenIsFoundByItself) {
  const auto rules =
      AccessRules::parse(token_lines("shop", "dt_a", R"("produce:orders:eu:", "read")") +
                             token_lines("ops", "dt_b", R"("admin")"),
                         "tokens");
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_EQ(rules->size(), 2U);
  const Role* const shop = rules->find("dt_a");
  ASSERT_NE(shop, nullptr);
  EXPECT_EQ(shop->name, "shop");
  EXPECT_EQ(shop->grants, (std::vector<Grant>{{Scope::produce, "orders:eu:"}, {Scope::read, ""}}));
  ASSERT_NE(rules->find("dt_b"), nullptr);
  EXPECT_EQ(rules->find("dt_b")->name, "ops");
}

TEST(AccessRules, NothingButTheWholeTokenIsOne) {
  const auto rules = AccessRules::parse(token_lines("shop", "dt_secret", R"("read")"), "tokens");
  ASSERT_TRUE(rules);
  const std::string hash = to_hex(hash_token("dt_secret"));
  for (const std::string& other :
       {std::string(), std::string("dt_secre"), std::string("dt_secret "), std::string("DT_SECRET"),
        std::string("shop"), hash, std::string("dt_secret\0", 10)}) {
    EXPECT_EQ(rules->find(other), nullptr) << other;
  }
}

TEST(AccessRules, AWrongFileIsRefusedWithItsLineAndWhatIsAllowed) {
  const std::string hash = to_hex(hash_token("t"));
  const std::string good = token_lines("a", "t", R"("read")");
  const std::pair<std::string, std::string> cases[] = {
      {"", "no [[token]]"},
      {"x = 1\n", "f:1: 'x' is not allowed here: tokens are [[token]]"},
      {"[token]\nname = \"a\"\n", "tokens are [[token]]"},
      {"[[token]\n", "f:1: "},
      {"\n[\\]\n", "f:2: "},
      {"\na\u00e9 = 1\n", "f:2: "},
      {"[[token]]\nname = \"a\"\nsha = \"b\"\n",
       "f:3: 'sha' is not allowed here: a token has name"},
      {"[[token]]\nname = \"a\"\nscopes = [\"read\"]\n", "f:1: the token has no sha256"},
      {"[[token]]\nsha256 = \"" + hash + "\"\nscopes = [\"read\"]\n", "has no name"},
      {"[[token]]\nname = \"a\"\nsha256 = \"" + hash + "\"\n", "has no scopes"},
      {"[[token]]\nname = \"\"\n", "f:2: name must be a text of 1 to 100 bytes"},
      {"[[token]]\nname = 3\n", "name must be a text"},
      {"[[token]]\nsha256 = \"" + hash.substr(1) + "\"\n", "64 hexadecimal digits"},
      {"[[token]]\nsha256 = \"g" + hash.substr(1) + "\"\n", "64 hexadecimal digits"},
      {"[[token]]\nscopes = \"read\"\n", "scopes must be a list"},
      {"[[token]]\nscopes = []\n", "scopes must be a list"},
      {"[[token]]\nscopes = [\"write\"]\n", "'write' is not a scope: use read, produce, consume"},
      {"[[token]]\nscopes = [\n\"read\",\n\"admin:\"]\n", "f:4: 'admin:' is not a scope"},
      {"[[token]]\nscopes = [7]\n", "is not a scope"},
      {good + token_lines("a", "u", R"("read")"), "f:6: another token already has the name 'a'"},
      {good + token_lines("b", "t", R"("read")"), "f:7: another token already has this sha256"},
  };
  for (const auto& [text, complaint] : cases) {
    const auto rules = AccessRules::parse(text, "f");
    ASSERT_FALSE(rules) << text;
    EXPECT_NE(rules.error().message.find(complaint), std::string::npos)
        << rules.error().message << " for " << text;
    EXPECT_EQ(rules.error().code, ErrorCode::invalid_argument);
  }
}

TEST(Role, AScopeGivesWhatItSaysOnItsQueuesOnly) {
  using enum Need;
  struct Case {
    Scope scope;
    std::vector<Need> gives;
  };
  const Case cases[] = {{Scope::read, {look}},
                        {Scope::produce, {look, produce}},
                        {Scope::consume, {look, consume}},
                        {Scope::admin, {look, produce, consume, admin}}};
  for (const Case& one : cases) {
    const Role role = role_with({{one.scope, "a."}});
    for (const Need need : {look, produce, consume, admin, look_all, admin_all}) {
      const bool is_given = std::find(one.gives.begin(), one.gives.end(), need) != one.gives.end();
      EXPECT_EQ(role.may(need, "a.x"), is_given) << to_string(one.scope) << to_string(need);
      EXPECT_EQ(role.may_somewhere(need), is_given) << to_string(one.scope) << to_string(need);
      for (const char* other : {"b", "a", "", "xa."}) EXPECT_FALSE(role.may(need, other)) << other;
    }
  }
}

TEST(Role, RoutesOfAllQueuesNeedAScopeWithoutPrefix) {
  EXPECT_TRUE(role_with({{Scope::read, ""}}).may(Need::look_all, ""));
  EXPECT_FALSE(role_with({{Scope::read, ""}}).may(Need::admin_all, ""));
  EXPECT_TRUE(role_with({{Scope::admin, ""}}).may(Need::admin_all, ""));
  EXPECT_FALSE(role_with({{Scope::admin, "a"}, {Scope::read, ""}}).may(Need::admin_all, ""));
}

TEST(AccessToken, IsLongRandomAndOfPlainCharacters) {
  const std::string token = make_token();
  EXPECT_EQ(token.size(), 3U + 43U);
  EXPECT_TRUE(token.starts_with("dt_"));
  EXPECT_EQ(
      token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
      std::string::npos);
  EXPECT_NE(token, make_token());
}

TEST(AccessToken, TheHashOfATokenIsSha256) {
  EXPECT_EQ(to_hex(hash_token("abc")),  // FIPS 180-4's example
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(parse_token_hash(to_hex(hash_token("abc"))), hash_token("abc"));
}

}  // namespace
}  // namespace detent::server
