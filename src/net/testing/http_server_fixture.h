// Fixture for tests of the HTTP server: a server on a free port, short time-outs, and a handler
// that hands requests to the test. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "net/http_server/http_server.h"
#include "tests/support/raw_socket.h"

namespace detent::net {

constexpr auto kLong = std::chrono::minutes(10);  // longer than any test

/// Passes values from the I/O thread to the test. Thread-safe.
template <class T>
class Mailbox {
 public:
  void push(T value) {
    MutexLock lock(mu_);
    values_.push_back(std::move(value));
    arrived_.notify_one();
  }
  /// Blocks until there is a value.
  T pop() {
    MutexLock lock(mu_);
    while (values_.empty()) arrived_.wait(mu_);
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  bool empty() const {
    MutexLock lock(mu_);
    return values_.empty();
  }

 private:
  mutable Mutex mu_;
  CondVar arrived_;
  std::deque<T> values_ DETENT_GUARDED_BY(mu_);
};

struct HeldRequest {
  HttpRequest request;
  Responder responder;
};

inline HttpResponse text(std::string body, int status = 200) {
  return {.status = status, .content_type = "text/plain", .body = std::move(body)};
}

/// Holds every request until the test has answered it.
struct HoldingHandler {
  Mailbox<HeldRequest>& held;
  void operator()(HttpRequest request, Responder responder) const {
    held.push({std::move(request), std::move(responder)});
  }
};

/// Answers immediately with method, target and body.
inline void echo(HttpRequest request, Responder responder) {
  responder.send(text(request.method + " " + request.target + " " + request.body));
}

inline std::unique_ptr<HttpServer> start_server(HttpHandler handler,
                                                HttpServerOptions options = {}) {
  auto server = HttpServer::start(
      std::move(options), std::move(handler), [](int status, std::string_view detail) {
        return text("error " + std::to_string(status) + ": " + std::string(detail), status);
      });
  if (!server) {
    ADD_FAILURE() << server.error().message;
    return nullptr;
  }
  return *std::move(server);
}

inline std::string get(std::string_view target) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n";
}

inline int status_of(std::string_view response) {
  return response.starts_with("HTTP/1.1 ") ? std::atoi(response.data() + 9) : 0;
}

inline std::string body_of(const std::string& response) {
  const std::size_t head_end = response.find("\r\n\r\n");
  return head_end == std::string::npos ? "" : response.substr(head_end + 4);
}

}  // namespace detent::net
