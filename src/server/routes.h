// The HTTP API: each route turns a request into verbs of the engine and their answer into a reply.
// docs/reference/http.md describes the routes; protocol/json knows the bodies.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "detent/clock.h"
#include "engine/engine_thread.h"
#include "net/http_server.h"
#include "server/http_reply.h"
#include "server/route_table.h"

namespace detent::server {

/// Thread-safe. `clock` must outlive it; the HTTP server must be stopped, and then `engine`, before
/// it is destroyed, because requests under way refer to it.
class Routes {
 public:
  Routes(EngineThread& engine, const Clock& clock);
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  /// Answers one request, now or once the engine has. Never blocks.
  void handle(net::HttpRequest request, net::Responder responder);

 private:
  struct Call {
    net::HttpRequest request;
    std::vector<std::string> parameters;
    HttpReply reply;
  };
  using Handler = std::function<void(const Call&)>;

  void schedule(const Call& call);
  void schedule_batch(const Call& call);
  void get_task(const Call& call);
  void cancel_task(const Call& call);
  void lease(const Call& call);
  void complete(const Call& call);
  void fail(const Call& call);
  void stats(const Call& call);
  void metrics(const Call& call);
  void ready(const Call& call);

  /// Runs `verb` on the engine's thread and hands its result, once it is durable, to `answer`; an
  /// error on either way is answered as a problem.
  template <class Verb, class Answer>
  void run(HttpReply reply, Verb verb, Answer answer);

  EngineThread& engine_;
  HttpMetrics http_metrics_;
  const MonotonicTime start_;
  RouteTable<Handler> table_;
};

}  // namespace detent::server
