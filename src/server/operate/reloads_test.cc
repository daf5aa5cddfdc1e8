#include "server/operate/reloads.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/log/log.h"
#include "base/testing/test_folder.h"
#include "net/testing/test_certificate.h"
#include "server/program/listeners.h"

namespace detent::server {
namespace {

/// Sends the log to a string while it lives.
class CapturedLog {
 public:
  CapturedLog() { configure_log({.level = LogLevel::info, .out = &out_}); }
  ~CapturedLog() { configure_log({}); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  /// Returns the log without its times, and clears it.
  std::string take() {
    std::istringstream in(out_.str());
    out_.str("");
    std::string said;
    for (std::string line; std::getline(in, line);) said += line.substr(line.find(' ') + 1) + "\n";
    return said;
  }

 private:
  std::ostringstream out_;
};

cli::ServeCall call(LogLevel level, const std::string& memory) {
  return {.options = {.log_level = level},
          .settings = {{"memory", memory, "detent.toml:3"}, {"log-level", "any", "detent.toml:4"}}};
}

Error wrong(const std::string& what) { return Error{ErrorCode::invalid_argument, what, ""}; }

TEST(Reloads, PutTheLevelOfTheLogInForce) {
  CapturedLog log;
  cli::ServeCall now = call(LogLevel::debug, "1G");
  Reloads reloads(call(LogLevel::info, "1G"), [&now] { return Result<cli::ServeCall>(now); });
  log_debug("no");
  reloads.run();
  EXPECT_EQ(log.take(), "info the reload is complete\n");
  log_debug("yes");
  EXPECT_EQ(log.take(), "debug yes\n");
  now.options.log_level = LogLevel::error;
  reloads.run();
  log_warning("no");
  EXPECT_EQ(log.take(), "");
}

TEST(Reloads, LogSettingsThatNeedARestartWithoutTheirValues) {
  CapturedLog log;
  Reloads reloads(call(LogLevel::info, "1G"),
                  [] { return Result<cli::ServeCall>(call(LogLevel::info, "redis://a:b@c")); });
  const std::string said =
      "warning a changed setting takes effect at the next start setting=memory "
      "from=detent.toml:3\n"
      "info the reload is complete\n";
  reloads.run();
  EXPECT_EQ(log.take(), said);
  reloads.run();
  EXPECT_EQ(log.take(), said) << "it is still not in force";
}

TEST(Reloads, SettingsThatCannotBeReadLeaveTheOldInForceAndFilesAreReadAllTheSame) {
  CapturedLog log;
  Reloads reloads(call(LogLevel::info, "1G"),
                  [] { return Result<cli::ServeCall>(wrong("detent.toml:1: no")); });
  int read = 0;
  reloads.add("the tokens", [&read] {
    ++read;
    return ok();
  });
  reloads.run();
  EXPECT_EQ(read, 1);
  EXPECT_EQ(log.take(),
            "error the settings cannot be reloaded; the old settings stay in force "
            "cause=\"detent.toml:1: no\" action=\"correct the file, then reload again (SIGHUP)\"\n"
            "info reloaded what=\"the tokens\"\n"
            "warning the reload is incomplete: see the errors before this line\n");
}

TEST(Reloads, APartThatFailsHoldsUpNoOther) {
  CapturedLog log;
  Reloads reloads(call(LogLevel::info, "1G"),
                  [] { return Result<cli::ServeCall>(call(LogLevel::info, "1G")); });
  std::vector<std::string> order;
  reloads.add("keys", [&order] {
    order.emplace_back("keys");
    return Result<void>(wrong("no key in line 2"));
  });
  reloads.add("certificate", [&order] {
    order.emplace_back("certificate");
    return ok();
  });
  reloads.run();
  EXPECT_EQ(order, (std::vector<std::string>{"keys", "certificate"}));
  EXPECT_EQ(
      log.take(),
      "error a file cannot be reloaded; its old values stay in force what=keys cause=\"no key in "
      "line 2\" action=\"correct the file, then reload again (SIGHUP)\"\n"
      "info reloaded what=certificate\n"
      "warning the reload is incomplete: see the errors before this line\n");
}

TEST(Reloads, WarnOfACertificateThatClientsWillRefuse) {
  const TestFolder folder;
  const std::string file = folder / "cert.pem";
  const std::string key = folder / "key.pem";
  net::write_certificate(file, key, {.names = "DNS:a.example,DNS:b.example"});
  CapturedLog log;
  const cli::ServeOptions options{.tls_cert = file, .tls_key = key, .host_names = {"c.example"}};
  Reloads reloads(call(LogLevel::info, "1G"),
                  [] { return Result<cli::ServeCall>(call(LogLevel::info, "1G")); });
  const SystemClock clock;
  ASSERT_TRUE(load_tls(options, reloads, clock));
  const std::string refused = "warning clients will refuse the certificate file=" + file;
  const std::string not_for_c = refused + " cause=\"the certificate is not for c.example\"\n";
  EXPECT_EQ(log.take(), not_for_c);
  const std::string read_again = "info reloaded what=\"the certificate in " + file + "\"\n";
  net::write_certificate(file, key, {.names = "DNS:a.example", .valid_from = -9, .valid_to = -1});
  reloads.run();
  const std::string said = log.take();
  EXPECT_TRUE(said.starts_with(refused + " cause=\"the certificate expired on 20")) << said;
  EXPECT_TRUE(said.ends_with(not_for_c + refused +
                             " cause=\"the certificate is not for b.example\"\n" + read_again +
                             "info the reload is complete\n"))
      << said;
  reloads.run();
  EXPECT_EQ(log.take(), said) << "the names of the last good certificate count, not its own";
  std::filesystem::remove(file);
  reloads.run();
  EXPECT_EQ(log.take(),
            "error a file cannot be reloaded; its old values stay in force what=\"the certificate "
            "in " +
                file + "\" cause=\"--tls-cert " + file + ": read " + file +
                ": No such file or directory\" action=\"correct the file, then reload again "
                "(SIGHUP)\"\n"
                "warning the reload is incomplete: see the errors before this line\n");
}

}  // namespace
}  // namespace detent::server
