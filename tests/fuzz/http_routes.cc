// Sends requests to all routes of the server. The engine has a store in memory and a clock that
// moves only if the input says so. Each request and each answer goes through the HTTP writer and
// the HTTP parser. The test checks:
//
//  - Each request gets an answer, and its status is not 5xx.
//  - Boost.JSON can read each JSON answer.
//  - An accepted task can be read.
//  - The invariants of the engine hold after each request.
//  - At the end, store_check.h finds the store sound.
#include <boost/json/parser.hpp>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "detent/check.h"
#include "engine/thread/engine_thread.h"
#include "net/http_server/exchange.h"
#include "net/message/http_parser.h"
#include "net/message/http_writer.h"
#include "protocol/json/answer_codec.h"
#include "server/routes/routes.h"
#include "server/watch/event_hub.h"
#include "store/store_check.h"
#include "store/testing/memory_store.h"
#include "tests/fuzz/fuzz_inputs.h"

namespace detent::fuzz {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxStreamBytes = 1 << 20;
constexpr net::ParseLimits kLimits{.max_header_bytes = 16 * 1024, .max_body_bytes = 1 << 20};

/// Receives the answer to one request.
class Waiting final : public net::AnswerTarget {
 public:
  void post_answer(std::optional<net::HttpResponse> response) override {
    const MutexLock lock(mu_);
    DETENT_CHECK(response.has_value());  // if not, the request got no answer
    answer_ = std::move(response);
  }
  void post_head(net::HttpResponse head) override { post_answer(std::move(head)); }
  void post_look() override {}  // the later data of a stream is not checked
  std::optional<net::HttpResponse> answer() const {
    const MutexLock lock(mu_);
    return answer_;
  }

 private:
  mutable Mutex mu_;
  std::optional<net::HttpResponse> answer_ DETENT_GUARDED_BY(mu_);
};

/// The server without its sockets.
class ServerInMemory {
 public:
  ServerInMemory() { open(); }
  ~ServerInMemory() {
    close();
    const std::unique_ptr<Store> store = MemoryStore::open(disk_).value();
    const StoreReport report = check_store(*store, [](std::uint64_t) {});
    DETENT_CHECK(report.is_sound());
  }
  ServerInMemory(const ServerInMemory&) = delete;
  ServerInMemory& operator=(const ServerInMemory&) = delete;

  void restart() {
    close();
    open();
  }
  void wait(milliseconds delay) {
    await_rest();
    clock_.advance(delay);
    await_rest();
  }
  net::HttpResponse ask(net::HttpRequest request) {
    Waiting waiting;
    const auto link = std::make_shared<net::ExchangeLink>(waiting, kMaxStreamBytes);
    routes_->handle(std::move(request), net::ExchangeLink::open(link));
    await_rest();
    if (!waiting.answer()) wait(kMaxLeaseWait);
    const std::optional<net::HttpResponse> answer = waiting.answer();
    DETENT_CHECK(answer.has_value());
    link->close();
    DETENT_CHECK(engine_->post([](Engine& engine) { engine.check_invariants(); }));
    return *answer;
  }

 private:
  /// Waits until the engine and the events have no work left.
  void await_rest() const { clock_.await_waiters(2); }
  void open() {
    store_ = MemoryStore::open(disk_).value();
    engine_ = std::make_unique<EngineThread>(
        OpenEngine{.store = nullptr,
                   .engine = Engine::open(*store_, clock_, {.changes = &changes_}).value()},
        clock_);
    events_ = std::make_unique<server::EventHub>(*engine_, changes_, clock_);
    routes_ = std::make_unique<server::Routes>(*engine_, *events_, clock_);
  }
  void close() {
    events_->stop();
    engine_->stop();
    routes_.reset();
    events_.reset();
    engine_.reset();
    store_.reset();
  }

  ManualClock clock_;
  MemoryDisk disk_;
  std::unique_ptr<Store> store_;
  ChangeFeed changes_;
  std::unique_ptr<EngineThread> engine_;
  std::unique_ptr<server::EventHub> events_;
  std::unique_ptr<server::Routes> routes_;
};

std::string_view cut_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

/// The request as a server would parse it; empty if the text is not a valid request.
std::optional<net::HttpRequest> request_of(std::string_view text) {
  const std::string_view start = cut_line(text);
  const std::size_t blank = start.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  net::HttpRequest request{.method = std::string(start.substr(0, blank)),
                           .target = std::string(start.substr(blank + 1)),
                           .headers = {},
                           .body = {}};
  while (!text.empty()) {
    const std::string_view line = cut_line(text);
    if (line.empty()) break;
    const std::size_t colon = std::min(line.find(':'), line.size() - 1);
    request.headers.emplace_back(line.substr(0, colon), line.substr(colon + 1));
  }
  request.body = text;
  std::string bytes;
  net::write_request(request, "127.0.0.1:7070", bytes);
  net::RequestParser parser(kLimits);
  const std::size_t taken = parser.parse(bytes);
  if (parser.state() != net::ParseState::complete || taken != bytes.size()) return std::nullopt;
  return parser.take();
}

void expect_json(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = 200;  // the depth of a payload and of the object around it
  boost::json::parser parser({}, options);
  boost::json::error_code error;
  parser.write(text.data(), text.size(), error);
  DETENT_CHECK(!error || error == boost::json::error::exponent_overflow);
}

void expect_good(const net::HttpResponse& answer, std::string_view method) {
  DETENT_CHECK(answer.status >= 200 && answer.status < 500);
  const bool is_problem = answer.status >= 400;
  DETENT_CHECK(is_problem == (answer.content_type == "application/problem+json"));
  if (is_problem || answer.content_type == "application/json") expect_json(answer.body);

  std::string bytes;
  net::write_response_head(answer, {.persistence = net::Persistence::keep}, "today", bytes);
  if (net::has_body(answer.status)) bytes += answer.body;
  net::ResponseParser parser({.max_header_bytes = 16 * 1024, .max_body_bytes = 64 << 20});
  parser.expect_answer_to(method == "HEAD" ? "GET" : method);
  DETENT_CHECK(parser.parse(bytes) == bytes.size());
  DETENT_CHECK(parser.state() == net::ParseState::complete);
  const net::HttpResponse heard = parser.take();
  DETENT_CHECK(heard.status == answer.status);
  DETENT_CHECK(!net::has_body(answer.status) || heard.body == answer.body);
}

void ask(ServerInMemory& server, const net::HttpRequest& request) {
  const net::HttpResponse answer = server.ask(request);
  expect_good(answer, request.method);
  const bool is_new = request.method == "POST" && answer.status == 201;
  if (!is_new || !request.target.starts_with("/v1/tasks")) return;
  const auto accepted = json::parse_accepted(answer.body);
  DETENT_CHECK(accepted.has_value());
  const std::string target = "/v1/tasks/" + to_string(accepted->id);
  const net::HttpResponse found =
      server.ask({.method = "GET", .target = target, .headers = {}, .body = {}});
  DETENT_CHECK(found.status == 200);
  DETENT_CHECK(json::parse_task(found.body).value().task.due_at == accepted->due_at);
}

/// Handles a line such as "WAIT 1500". Waits two days at most.
bool wait(ServerInMemory& server, std::string_view line) {
  constexpr std::string_view kWait = "WAIT ";
  constexpr std::uint32_t kMost = 2 * 86'400'000;
  if (!line.starts_with(kWait)) return false;
  std::uint32_t count = 0;
  std::from_chars(line.data() + kWait.size(), line.data() + line.size(), count);
  server.wait(milliseconds{std::min(count, kMost)});
  return true;
}

}  // namespace

void http_routes(std::string_view input) {
  constexpr int kMaxRequests = 30;
  ServerInMemory server;
  for (int i = 0; i < kMaxRequests && !input.empty(); ++i) {
    const std::string_view text = input.substr(0, input.find('\0'));
    input.remove_prefix(std::min(text.size() + 1, input.size()));
    if (text == "RESTART") {
      server.restart();
    } else if (!wait(server, text)) {
      const auto request = request_of(text);
      if (request) ask(server, *request);
    }
  }
}

}  // namespace detent::fuzz
