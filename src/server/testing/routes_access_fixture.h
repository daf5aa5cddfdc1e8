// Fixture: a server that requires tokens. A file has one token for each scope, and a test can
// rewrite the file. Tests only.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "server/access/access_token.h"
#include "server/testing/routes_fixture.h"

namespace detent::server {

/// Names and scopes. Each token is "dt_" and its name. Names without a scope are not in the file.
inline constexpr std::pair<const char*, const char*> kTokens[] = {
    {"none", ""},
    {"wrong", ""},
    {"read-a", R"("read:a.")"},
    {"produce-a", R"("produce:a.")"},
    {"produce-b", R"("produce:b.")"},
    {"consume-a", R"("consume:a.")"},
    {"consume-b", R"("consume:b.")"},
    {"admin-a", R"("admin:a.")"},
    {"admin-b", R"("admin:b.")"},
    {"read", R"("read")"},
    {"admin", R"("admin")"},
};

class RoutesAccessTest : public RoutesTest {
 public:
  ~RoutesAccessTest() override { std::filesystem::remove(file_); }

 protected:
  RoutesAccessTest() {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    file_ = ::testing::TempDir() + "tokens_" + name + "_" + std::to_string(getpid()) + ".toml";
    write_tokens();
    access_ = Access::load(file_).value();
    routes_ = std::make_unique<Routes>(*engine_, *events_, clock_,
                                       RoutesOptions{.access = access_.get()});
  }

  /// Writes all tokens except `but_for`; the token `demoted` gets only the scope `read`.
  void write_tokens(const std::string& but_for = "", const std::string& demoted = "") const {
    std::ofstream out(file_);
    for (const auto& [token, scopes] : kTokens) {
      if (*scopes == '\0' || token == but_for) continue;
      out << "[[token]]\nname = \"" << token << "\"\nsha256 = \""
          << to_hex(hash_token(std::string("dt_") + token)) << "\"\nscopes = ["
          << (token == demoted ? "\"read\"" : scopes) << "]\n";
    }
    out.close();
    chmod(file_.c_str(), S_IRUSR | S_IWUSR);
  }
  net::HttpResponse as(const std::string& token, const std::string& method,
                       const std::string& target, std::string body = "") {
    net::HttpHeaders headers;
    if (token != "none") headers.emplace_back("authorization", "Bearer dt_" + token);
    return client_
        ->send({.method = method, .target = target, .headers = headers, .body = std::move(body)})
        .value();
  }
  std::string schedule_in(const std::string& queue, const std::string& key) {
    const auto answer = as("admin", "POST", "/v1/tasks",
                           R"({"queue":")" + queue + R"(","key":")" + key + R"(","delay":"1h"})");
    return to_string(json::parse_accepted(answer.body).value().id);
  }
  std::string lease_of(const std::string& queue) {
    as("admin", "POST", "/v1/tasks", R"({"queue":")" + queue + R"("})");
    const auto answer = as("admin", "POST", "/v1/queues/" + queue + "/lease");
    return json::parse_leased_tasks(answer.body).value().at(0).lease;
  }

  std::string file_;
  std::unique_ptr<Access> access_;
};

}  // namespace detent::server
