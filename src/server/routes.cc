#include "server/routes.h"

#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "protocol/json/answer_renderer.h"
#include "protocol/json/problem.h"
#include "protocol/json/request_parser.h"
#include "server/metrics.h"
#include "server/version.h"

namespace detent::server {
namespace {

constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
constexpr std::string_view kMetricsText = "text/plain; version=0.0.4; charset=utf-8";

constexpr std::string_view kWelcome =
    "Detent, a durable delayed-task server, is running here.\n"
    "  POST /v1/tasks                  schedule a task\n"
    "  POST /v1/queues/{queue}/lease   take what is due\n"
    "  POST /v1/leases/complete        say that it is done\n"
    "  GET  /v1/stats  /metrics  /healthz  /readyz\n";

Error overloaded() {
  return {ErrorCode::unavailable, "too many requests wait, or the server is stopping; retry"};
}

/// One call of `end_one` for each lease that is one, a conflict for each that is not.
template <class EndOne>
std::vector<Result<LeaseOutcome>> end_leases(const json::LeaseList& leases, EndOne end_one) {
  std::vector<Result<LeaseOutcome>> outcomes;
  outcomes.reserve(leases.size());
  for (const std::optional<LeaseToken>& lease : leases) {
    outcomes.push_back(lease ? end_one(*lease) : Result<LeaseOutcome>(LeaseOutcome::conflict));
  }
  return outcomes;
}

}  // namespace

Routes::Routes(EngineThread& engine, const Clock& clock)
    : engine_(engine), http_metrics_(clock), start_(clock.now()) {
  using Method = void (Routes::*)(const Call&);
  const auto add = [this](std::string_view method, std::string_view pattern, Method handler) {
    table_.add(method, pattern,
               [this, handler](const Call& call) { std::invoke(handler, this, call); });
  };
  add("POST", "/v1/tasks", &Routes::schedule);
  add("POST", "/v1/tasks/batch", &Routes::schedule_batch);
  add("GET", "/v1/tasks/{id}", &Routes::get_task);
  add("DELETE", "/v1/tasks/{id}", &Routes::cancel_task);
  add("POST", "/v1/queues/{queue}/lease", &Routes::lease);
  add("POST", "/v1/leases/complete", &Routes::complete);
  add("POST", "/v1/leases/fail", &Routes::fail);
  add("GET", "/v1/stats", &Routes::stats);
  add("GET", "/metrics", &Routes::metrics);
  add("GET", "/readyz", &Routes::ready);
  table_.add("GET", "/healthz",
             [](const Call& call) { call.reply.send_json(200, R"({"status":"ok"})"); });
  table_.add("GET", "/", [](const Call& call) {
    call.reply.send(
        {.status = 200, .content_type = std::string(kPlainText), .body = std::string(kWelcome)});
  });
}

void Routes::handle(net::HttpRequest request, net::Responder responder) {
  const std::string_view method =
      request.method == "HEAD" ? "GET" : std::string_view{request.method};
  auto match = table_.find(method, request.target);
  HttpReply reply(std::move(responder), match ? match->pattern : "other", http_metrics_);
  if (!match) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    return reply.send(http_problem(404, "there is nothing at " + path));
  }
  if (match->handler == nullptr) {
    net::HttpResponse refusal =
        http_problem(405, request.method + " is not allowed here; allowed: " + match->allowed);
    refusal.headers.emplace_back("allow", match->allowed);
    return reply.send(std::move(refusal));
  }
  (*match->handler)(Call{.request = std::move(request),
                         .parameters = std::move(match->parameters),
                         .reply = std::move(reply)});
}

template <class Verb, class Answer>
void Routes::run(HttpReply reply, Verb verb, Answer answer) {
  const bool posted = engine_.post(
      [reply, verb = std::move(verb), answer = std::move(answer)](Engine& engine) mutable {
        auto result = verb(engine);
        engine.after_commit([reply, result = std::move(result),
                             answer = std::move(answer)](const Result<void>& committed) mutable {
          if (!committed) return reply.send_error(committed.error());
          if (!result) return reply.send_error(result.error());
          answer(reply, *result);
        });
      });
  if (!posted) reply.send_error(overloaded());
}

void Routes::schedule(const Call& call) {
  Result<ScheduleRequest> request = json::parse_schedule(call.request.body);
  if (!request) return call.reply.send_error(request.error());
  run(
      call.reply,
      [request = *std::move(request)](Engine& engine) { return engine.schedule(request); },
      [](const HttpReply& reply, const TaskView& view) {
        reply.send({.status = 201,
                    .body = json::render_accepted(view),
                    .headers = {{"location", "/v1/tasks/" + to_string(view.task.id)}}});
      });
}

void Routes::schedule_batch(const Call& call) {
  auto requests =
      json::parse_schedule_batch(call.request.body, call.request.header("content-type"));
  if (!requests) return call.reply.send_error(requests.error());
  const auto schedule_all =
      [requests = *std::move(requests)](Engine& engine) -> Result<std::vector<Result<TaskView>>> {
    std::vector<Result<TaskView>> results;
    results.reserve(requests.size());
    for (const Result<ScheduleRequest>& request : requests) {
      results.push_back(request ? engine.schedule(*request) : Result<TaskView>(request.error()));
    }
    return results;
  };
  run(call.reply, schedule_all,
      [](const HttpReply& reply, const std::vector<Result<TaskView>>& results) {
        reply.send_json(200, json::render_schedule_results(results));
      });
}

void Routes::get_task(const Call& call) {
  const std::optional<TaskId> id = parse_task_id(call.parameters.front());
  if (!id) return call.reply.send(http_problem(404, "no task has such an id"));
  run(
      call.reply, [id = *id](Engine& engine) { return engine.get(id); },
      [](const HttpReply& reply, const TaskView& view) {
        reply.send_json(200, json::render_task(view));
      });
}

void Routes::cancel_task(const Call& call) {
  const std::optional<TaskId> id = parse_task_id(call.parameters.front());
  if (!id) return call.reply.send(http_problem(404, "no task has such an id"));
  const auto cancel = [id = *id](Engine& engine) -> Result<TaskId> {
    TRY(engine.cancel(id));
    return id;
  };
  run(call.reply, cancel, [](const HttpReply& reply, TaskId cancelled) {
    reply.send_json(200, R"({"id":")" + to_string(cancelled) + R"(","state":"cancelled"})");
  });
}

void Routes::lease(const Call& call) {
  Result<json::LeaseCall> request = json::parse_lease(call.parameters.front(), call.request.body);
  if (!request) return call.reply.send_error(request.error());
  const HttpReply reply = call.reply;
  const bool posted = engine_.post([this, reply, request = *std::move(request)](Engine& engine) {
    const Engine::WaitId wait = engine.lease_or_wait(
        request.lease, request.wait, [reply](Result<std::vector<LeasedTask>> tasks) {
          if (!tasks) return reply.send_error(tasks.error());
          reply.send_json(200, json::render_leased_tasks(*tasks));
        });
    // A worker that goes away while it waits must not be given a task.
    reply.on_gone(
        [this, wait] { (void)engine_.post([wait](Engine& later) { later.abandon_wait(wait); }); });
  });
  if (!posted) reply.send_error(overloaded());
}

void Routes::complete(const Call& call) {
  Result<json::LeaseList> leases = json::parse_complete(call.request.body);
  if (!leases) return call.reply.send_error(leases.error());
  const auto complete_all =
      [leases = *std::move(leases)](Engine& engine) -> Result<std::vector<Result<LeaseOutcome>>> {
    return end_leases(leases, [&engine](LeaseToken lease) { return engine.complete(lease); });
  };
  run(call.reply, complete_all,
      [](const HttpReply& reply, const std::vector<Result<LeaseOutcome>>& outcomes) {
        reply.send_json(200, json::render_lease_results(outcomes));
      });
}

void Routes::fail(const Call& call) {
  Result<json::FailCall> request = json::parse_fail(call.request.body);
  if (!request) return call.reply.send_error(request.error());
  const auto fail_all =
      [request = *std::move(request)](Engine& engine) -> Result<std::vector<Result<LeaseOutcome>>> {
    return end_leases(request.leases, [&](LeaseToken lease) {
      return engine.fail({.lease = lease, .delay = request.delay, .error = request.error});
    });
  };
  run(call.reply, fail_all,
      [](const HttpReply& reply, const std::vector<Result<LeaseOutcome>>& outcomes) {
        reply.send_json(200, json::render_lease_results(outcomes));
      });
}

void Routes::stats(const Call& call) {
  const auto read = [](Engine& engine) -> Result<EngineStats> { return engine.stats(); };
  run(call.reply, read, [this](const HttpReply& reply, EngineStats& stats) {
    const auto uptime = std::chrono::floor<std::chrono::milliseconds>(http_metrics_.now() - start_);
    reply.send_json(200, json::render_stats({.version = kVersion,
                                             .uptime = uptime,
                                             .loaded = stats.loaded,
                                             .waiting_workers = stats.waiting_workers,
                                             .counters = stats.counters,
                                             .queues = std::move(stats.queues)}));
  });
}

void Routes::metrics(const Call& call) {
  // Not through run(): the figures matter most when the store has failed.
  const HttpReply reply = call.reply;
  const bool posted = engine_.post([this, reply](Engine& engine) {
    reply.send({.status = 200,
                .content_type = std::string(kMetricsText),
                .body = render_metrics(engine.stats(), http_metrics_.snapshot())});
  });
  if (!posted) reply.send_error(overloaded());
}

void Routes::ready(const Call& call) {
  const auto look = [](Engine& engine) -> Result<bool> {
    if (engine.stopped_by()) return *engine.stopped_by();
    return true;
  };
  run(call.reply, look, [](const HttpReply& reply, bool /*is_ready*/) {
    reply.send_json(200, R"({"status":"ready"})");
  });
}

}  // namespace detent::server
