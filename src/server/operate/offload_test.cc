#include "server/operate/offload.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>

#include "base/log/redact.h"
#include "base/testing/test_folder.h"
#include "external/external_url.h"
#include "net/http_server/http_server.h"
#include "net/socket/tls_server.h"
#include "net/testing/test_certificate.h"
#include "store/testing/memory_store.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

TEST(Offload, TasksComeBackHalfOfTheTimeBeforeTheyAreDue) {
  const FarTasksOptions far = far_tasks_options({.url = "", .after = 24h, .window = 10min}).value();
  EXPECT_EQ(far.far, 24h);
  EXPECT_EQ(far.near, 12h);
  const FarTasksOptions short_time =
      far_tasks_options({.url = "", .after = 4s, .window = 2s}).value();
  EXPECT_EQ(short_time.near, 2s);
  EXPECT_EQ(short_time.claim, 1s) << "before it is due";
  EXPECT_EQ(short_time.interval, 1s);
}

TEST(Offload, AWindowThatReachesWhatIsAwayIsRefused) {
  const auto far = far_tasks_options({.url = "", .after = 20min - 1ms, .window = 10min});
  EXPECT_EQ(far.error().message,
            "--external-after must be at least 20m (twice --window, and at least 1s), got "
            "1199999ms");
  EXPECT_FALSE(far_tasks_options({.url = "", .after = 999ms, .window = 1ms}));
  EXPECT_FALSE(far_tasks_options({.url = "", .after = 24h * 36'500 * 3, .window = 1ms}));
}

TEST(Offload, WithoutAUrlThereIsNoneAndAWrongOneIsSaid) {
  SystemClock clock;
  MemoryDisk disk;
  const std::unique_ptr<Store> store = MemoryStore::open(disk).value();
  EngineThread engine(
      OpenEngine{.store = nullptr, .engine = Engine::open(*store, clock, {}).value()}, clock);
  EXPECT_EQ(start_offload({}, engine, clock).value(), nullptr);
  for (const char* url : {"https://ada:pw@127.0.0.1:6379", "https://127.0.0.1:1?ca=/none",
                          "redis://nowhere", "http://", "http://h:1?queue=-"}) {
    EXPECT_EQ(start_offload({.url = url}, engine, clock).error().code, ErrorCode::invalid_argument)
        << url;
  }
  for (const auto& [url, allowed] : {std::pair{"foo://x", "such as redis://127.0.0.1:6379"},
                                     {"redis://a@h:1", "must be USER:PASSWORD"},
                                     {"http://h:1?colour=red", "only queue=NAME and ca=FILE"}}) {
    const Error wrong = start_offload({.url = url}, engine, clock).error();
    EXPECT_TRUE(wrong.message.starts_with("--external: ")) << wrong.message;
    EXPECT_NE(wrong.message.find(allowed), std::string::npos) << wrong.message;
    EXPECT_EQ(redact(wrong.message), wrong.message) << "its examples are no secrets";
  }
}

TEST(Offload, TheTokenGoesByTlsToAServerThatIsTrusted) {
  const TestFolder folder;
  const std::string base = folder / "server";
  net::write_certificate(base + ".crt", base + ".key", {});
  std::string authorization;  // written before the answer goes out, read after it came in
  const auto server = net::HttpServer::start(
                          {.tls = net::TlsServer::load(base + ".crt", base + ".key").value()},
                          [&](const net::HttpRequest& request, const net::Responder& responder) {
                            authorization = request.header("authorization");
                            responder.send({.status = 404, .body = ""});
                          },
                          [](int status, std::string_view) {
                            return net::HttpResponse{.status = status, .body = ""};
                          })
                          .value();
  const std::string address = "127.0.0.1:" + std::to_string(server->port());
  const auto scheduler_for = [](const std::string& url) {
    auto options = std::get<RemoteDetentOptions>(parse_external_url(url).value());
    options.folder = "folder-1";
    return RemoteDetentScheduler::create(options).value();
  };
  const auto trusting = scheduler_for("https://dt_x@" + address + "?ca=" + base + ".crt");
  EXPECT_EQ(trusting->find(TaskId{256}).error().code, ErrorCode::not_found) << "is what it says";
  EXPECT_EQ(authorization, "Bearer dt_x");
  authorization.clear();
  const auto found = scheduler_for("https://dt_x@" + address)->find(TaskId{256});
  EXPECT_EQ(found.error().code, ErrorCode::unavailable);
  EXPECT_EQ(found.error().message.find("dt_x"), std::string::npos) << found.error().message;
  EXPECT_EQ(authorization, "") << "sent to a server that it does not trust";
}

}  // namespace
}  // namespace detent::server
