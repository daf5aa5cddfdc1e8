#include "server/routes/routes.h"

#include <functional>
#include <memory>
#include <utility>

#include "base/histogram.h"
#include "external/offload_thread.h"
#include "net/message/http_query.h"
#include "protocol/json/answer_codec.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/request_codec.h"
#include "server/backup/backups.h"
#include "server/http/etag.h"
#include "server/http/metrics.h"
#include "server/http/openapi.h"
#include "server/operate/disk_watch.h"
#include "server/routes/routes_run.h"

namespace detent::server {
namespace {

/// The task that a path names, by its id or by its queue and key. Errors: not_found, and those of
/// permit(): a queue in the path was checked before.
Result<TaskId> named_task(Engine& engine, const std::vector<std::string>& path,
                          const Caller& caller, Need need) {
  if (path.size() == 2) return engine.id_of_key(path.front(), path.back());
  const std::optional<TaskId> id = parse_task_id(path.front());
  if (!id)
    return Error{ErrorCode::not_found, "no task has this id; an id is a number, such as 256", "id"};
  TRY(permit(engine, caller, need, *id));
  return *id;
}

/// A task with the rules in force. One that has ended may outlive its queue.
Result<TaskSnapshot> view_task(Engine& engine, TaskId id) {
  ASSIGN_OR_RETURN(TaskSnapshot view, engine.get(id));
  const Result<QueueView> queue = engine.queue(view.task.queue);
  if (queue) show_rules_in_force(view.task.rules, queue->settings);
  return view;
}

/// The task after a verb; no value if the task has changed since the caller read it.
using Changed = std::optional<TaskSnapshot>;

/// Carries out `verb` unless the request's If-Match names other versions of the task.
template <class Verb>
Result<Changed> if_unchanged(Engine& engine, TaskId id, const std::optional<std::string>& if_match,
                             Verb verb) {
  if (if_match) {
    ASSIGN_OR_RETURN(const TaskSnapshot seen, view_task(engine, id));
    if (!allows(*if_match, etag_of(seen))) return Changed();
  }
  ASSIGN_OR_RETURN(TaskSnapshot view, verb());
  return Changed(std::move(view));
}

bool is_refused(const HttpReply& reply, const Changed& changed) {
  if (changed) return false;
  reply.send(
      http_problem(412, "the task has changed since the version in If-Match: read it again"));
  return true;
}

void answer_moved(const HttpReply& reply, const Changed& changed) {
  if (is_refused(reply, changed)) return;
  reply.send({.status = 200,
              .body = json::render_accepted(*changed),
              .headers = {{"etag", etag_of(*changed)}}});
}

/// The task goes on in the trace of the request that made it. Returns no value if it is not traced.
std::optional<TaskTracer::Accept> keep_trace(const net::HttpRequest& request, ScheduleRequest& task,
                                             TaskTracer* tracer) {
  const std::string_view traceparent = request.header("traceparent");
  if (!traceparent.empty()) {
    detent::keep_trace(task.headers, traceparent, request.header("tracestate"));
  }
  if (tracer == nullptr) return std::nullopt;
  return tracer->begin_accept(task.headers);
}

/// Refuses encoded bodies. No code here decompresses a body, so no body can become larger than its
/// size on the wire.
std::optional<net::HttpResponse> refuse_coded(const net::HttpRequest& request) {
  const std::string_view coding = request.header("content-encoding");
  if (coding.empty() || net::equals_ignoring_case(coding, "identity")) return std::nullopt;
  net::HttpResponse refusal =
      http_problem(415, "Content-Encoding " + std::string(coding) +
                            " is not supported: send the body unencoded, without this header");
  refusal.headers.emplace_back("accept-encoding", "identity");
  return refusal;
}

}  // namespace

Routes::Routes(EngineThread& engine, EventHub& events, const Clock& clock, RoutesOptions options)
    : Routes(&engine, events, clock, std::move(options)) {}

Routes::Routes(EventHub& events, const Clock& clock, RoutesOptions options)
    : Routes(nullptr, events, clock, std::move(options)) {}

Routes::Routes(EngineThread* engine, EventHub& events, const Clock& clock, RoutesOptions options)
    : engine_(engine),
      events_(events),
      options_(std::move(options)),
      offload_(options_.offload),
      http_metrics_(clock),
      start_(clock.now()),
      refusals_(clock),
      audits_(clock) {
  add("POST", "/v1/tasks", Need::produce, &Routes::schedule);
  add_with_query("GET", "/v1/tasks", Need::any_token, &Routes::list_tasks);
  add("POST", "/v1/tasks/batch", Need::produce, &Routes::schedule_batch);
  add("POST", "/v1/tasks/cancel", Need::produce, &Routes::cancel_batch);
  add("POST", "/v1/tasks/move", Need::produce, &Routes::move_batch);
  add("GET", "/v1/tasks/{id}", Need::look, &Routes::get_task);
  add("PATCH", "/v1/tasks/{id}", Need::produce, &Routes::edit_task);
  add("DELETE", "/v1/tasks/{id}", Need::produce, &Routes::cancel_task);
  add("POST", "/v1/tasks/{id}/run", Need::produce, &Routes::run_task);
  add("POST", "/v1/queues/{queue}/lease", Need::consume, &Routes::lease);
  add("POST", "/v1/leases/complete", Need::consume, &Routes::complete);
  add("POST", "/v1/leases/fail", Need::consume, &Routes::fail);
  add("POST", "/v1/leases/extend", Need::consume, &Routes::extend);
  add("POST", "/v1/leases/release", Need::consume, &Routes::release);
  add_with_query("GET", "/v1/queues", Need::any_token, &Routes::list_queues);
  add("GET", "/v1/queues/{queue}", Need::look, &Routes::get_queue);
  add("PATCH", "/v1/queues/{queue}", Need::admin, &Routes::change_queue);
  add("DELETE", "/v1/queues/{queue}", Need::admin, &Routes::remove_queue);
  add("POST", "/v1/queues/{queue}/pause", Need::admin, &Routes::pause_queue);
  add("POST", "/v1/queues/{queue}/resume", Need::admin, &Routes::resume_queue);
  add("POST", "/v1/queues/{queue}/purge", Need::admin, &Routes::purge_queue);
  add("POST", "/v1/queues/{queue}/redrive", Need::admin, &Routes::redrive_queue);
  add("GET", "/v1/queues/{queue}/keys/{key}", Need::look, &Routes::get_task);
  add("PATCH", "/v1/queues/{queue}/keys/{key}", Need::produce, &Routes::edit_task);
  add("DELETE", "/v1/queues/{queue}/keys/{key}", Need::produce, &Routes::cancel_task);
  add_with_query("GET", "/v1/schedules", Need::look_all, &Routes::list_schedules);
  add("GET", "/v1/schedules/{name}", Need::look_all, &Routes::get_schedule);
  add("PUT", "/v1/schedules/{name}", Need::admin_all, &Routes::put_schedule);
  add("DELETE", "/v1/schedules/{name}", Need::admin_all, &Routes::remove_schedule);
  add_with_query("GET", "/v1/schedules/{name}/next", Need::look_all, &Routes::next_of_schedule);
  add("POST", "/v1/schedules/{name}/pause", Need::admin_all, &Routes::pause_schedule);
  add("POST", "/v1/schedules/{name}/resume", Need::admin_all, &Routes::resume_schedule);
  add("POST", "/v1/schedules/{name}/trigger", Need::admin_all, &Routes::trigger_schedule);
  add("POST", "/v1/schedules/{name}/backfill", Need::admin_all, &Routes::backfill_schedule);
  add_with_query("POST", "/v1/occurrences", Need::any_token, &Routes::preview_schedule);
  add_with_query("GET", "/v1/stats", Need::any_token, &Routes::stats);
  add_with_query("GET", "/v1/stats/history", Need::any_token, &Routes::stats_history);
  add_with_query("GET", "/v1/events", Need::look_all, &Routes::events);
  add_with_query("GET", "/v1/forecast", Need::any_token, &Routes::forecast);
  add("GET", "/v1/wheel", Need::look_all, &Routes::wheel);
  add_with_query("GET", "/v1/dump", Need::admin_all, &Routes::dump);
  add("POST", "/v1/restore", Need::admin_all, &Routes::restore);
  add("POST", "/v1/backup", Need::admin_all, &Routes::begin_backup);
  add("POST", "/v1/backup/end", Need::admin_all, &Routes::end_backup);
  add_with_query("GET", "/metrics", Need::look_all, &Routes::metrics);
  add("GET", "/v1/cluster", Need::look_all, &Routes::cluster);
  add_with_query("GET", "/readyz", Need::nothing, &Routes::ready);
  add_with_query("GET", "/", Need::nothing, &Routes::dashboard);
  add_with_query("GET", "/assets/{name}", Need::nothing, &Routes::dashboard);
  serve("/healthz", [](const Call& call) { call.reply.send_json(200, R"({"status":"ok"})"); });
  serve("/openapi.json",
        [](const Call& call) { call.reply.send_json(200, std::string(openapi_document())); });
}

void Routes::add(std::string_view method, std::string_view pattern, Need need, Handler handler) {
  table_.add(method, pattern,
             {.need = need, .query = Query::none, .handle = [this, handler](const Call& call) {
                std::invoke(handler, this, call);
              }});
}

void Routes::add_with_query(std::string_view method, std::string_view pattern, Need need,
                            Handler handler) {
  table_.add(method, pattern,
             {.need = need,
              .query = Query::left_to_handler,
              .handle = [this, handler](const Call& call) { std::invoke(handler, this, call); }});
}

void Routes::serve(std::string_view pattern, std::function<void(const Call&)> handler) {
  table_.add(
      "GET", pattern,
      {.need = Need::nothing, .query = Query::left_to_handler, .handle = std::move(handler)});
}

std::vector<Routes::Route> Routes::all() const {
  std::vector<Route> routes;
  table_.for_each(
      [&routes](std::string_view method, std::string_view pattern, const Endpoint& endpoint) {
        routes.push_back({method, pattern, endpoint.need});
      });
  return routes;
}

std::optional<net::RouteMatch<Routes::Endpoint>> Routes::match_of(
    const net::HttpRequest& request) const {
  return table_.find(request.method, request.target);
}

HttpReply Routes::reply_to(const net::HttpRequest& request,
                           const std::optional<net::RouteMatch<Endpoint>>& match,
                           net::Responder responder) {
  return HttpReply(std::move(responder), match ? match->pattern : "other", shared_with(request),
                   http_metrics_);
}

std::optional<net::HttpResponse> Routes::refuse_unread(const net::HttpRequest& head) {
  const auto match = match_of(head);
  HttpReply reply = reply_to(head, match, net::Responder(nullptr));
  Caller caller;
  std::optional<net::HttpResponse> answer = answer_at_once(head, match, reply, caller);
  if (answer) reply.note(*answer);
  return answer;
}

void Routes::handle(net::HttpRequest request, net::Responder responder) {
  auto match = match_of(request);
  HttpReply reply = reply_to(request, match, std::move(responder));
  Caller caller;
  if (std::optional<net::HttpResponse> answer = answer_at_once(request, match, reply, caller)) {
    return reply.send(*std::move(answer));
  }
  match->handler->handle(Call{.request = std::move(request),
                              .parameters = std::move(match->parameters),
                              .reply = std::move(reply),
                              .caller = std::move(caller)});
}

std::optional<net::HttpResponse> Routes::answer_at_once(
    const net::HttpRequest& request, const std::optional<net::RouteMatch<Endpoint>>& match,
    HttpReply& reply, Caller& caller) {
  if (!match) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    return http_problem(404, "there is nothing at " + path);
  }
  const bool is_preflight =
      request.method == "OPTIONS" && !request.header("access-control-request-method").empty();
  if (is_preflight && !shared_with(request).empty()) {
    return net::HttpResponse{.status = 204,
                             .content_type = "",
                             .body = "",
                             .headers = {{"access-control-allow-methods", match->allowed},
                                         {"access-control-allow-headers",
                                          "authorization, content-type, if-match, last-event-id"},
                                         {"access-control-max-age", "600"}}};
  }
  if (match->handler == nullptr) {
    net::HttpResponse refusal =
        http_problem(405, request.method + " is not allowed here; allowed: " + match->allowed);
    refusal.headers.emplace_back("allow", match->allowed);
    return refusal;
  }
  std::optional<net::HttpResponse> refused = refusal(request, *match, caller);
  // Unknown callers are not audited here. The log of refusals, which limits its rate, has logged
  // them.
  const bool is_known = options_.access == nullptr || caller.is_token();
  if (is_known && is_audited(match->handler->need)) {
    reply.audit(audits_, audited_act(caller.name(), request));
  }
  if (!refused && match->handler->query == Query::none) {
    const Result<void> none = net::take_query(request.target, {});
    if (!none) refused = http_error(none.error());
  }
  if (!refused) refused = refuse_coded(request);
  if (!refused) refused = refuse_conditions(request, match->pattern);
  return refused;
}

/// Returns the origin whose page may read the answer in a browser (CORS): the one allowed origin if
/// it asks, otherwise "".
std::string_view Routes::shared_with(const net::HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  const std::string& shared = options_.cors_origin;
  if (origin.empty() || (shared != "*" && origin != shared)) return {};
  return shared;
}

void Routes::schedule(const Call& call) {
  Result<ScheduleRequest> request = json::parse_schedule(call.request.body);
  if (!request) return call.reply.send_error(request.error());
  if (const auto allowed = call.caller.require(Need::produce, request->queue); !allowed) {
    return call.reply.send_error(allowed.error());
  }
  auto accept = keep_trace(call.request, *request, options_.tracer);
  EngineThread::QueueOf queue = for_queue(request->queue);
  run(
      call.reply,
      [request = *std::move(request)](Engine& engine) { return engine.schedule(request); },
      [accept, tracer = options_.tracer](const HttpReply& reply, const TaskSnapshot& view) {
        if (accept) tracer->accepted(*accept, view);
        reply.send({.status = view.was_there ? 200 : 201,
                    .body = json::render_accepted(view),
                    .headers = {{"location", location_of(view.task.id)}}});
      },
      std::move(queue));
}

void Routes::schedule_batch(const Call& call) {
  auto requests =
      json::parse_schedule_batch(call.request.body, call.request.header("content-type"));
  if (!requests) return call.reply.send_error(requests.error());
  TaskTracer* const tracer = options_.tracer;
  std::vector<std::optional<TaskTracer::Accept>> accepts(tracer != nullptr ? requests->size() : 0);
  for (std::size_t i = 0; i < requests->size(); ++i) {
    Result<ScheduleRequest>& request = (*requests)[i];
    if (!request) continue;
    const Result<void> allowed = call.caller.require(Need::produce, request->queue);
    if (!allowed) request = allowed.error();
    if (!request) continue;
    auto accept = keep_trace(call.request, *request, tracer);
    if (accept) accepts[i] = *accept;
  }
  const auto first =
      std::ranges::find_if(*requests, [](const auto& each) { return each.has_value(); });
  EngineThread::QueueOf queue;
  if (first != requests->end()) queue = for_queue((*first)->queue);
  const auto schedule_all = [requests = *std::move(requests)](
                                Engine& engine) -> Result<std::vector<Result<TaskSnapshot>>> {
    std::vector<Result<TaskSnapshot>> results;
    results.reserve(requests.size());
    for (const Result<ScheduleRequest>& request : requests) {
      results.push_back(request ? engine.schedule(*request)
                                : Result<TaskSnapshot>(request.error()));
      engine.hand_out_due();
    }
    return results;
  };
  auto answer = [accepts = std::move(accepts), tracer](
                    const HttpReply& reply, const std::vector<Result<TaskSnapshot>>& results) {
    for (std::size_t i = 0; i < accepts.size(); ++i) {
      if (accepts[i] && results[i]) tracer->accepted(*accepts[i], *results[i]);
    }
    reply.send_json(200, json::render_schedule_results(results));
  };
  run(call.reply, schedule_all, std::move(answer), std::move(queue));
}

void Routes::get_task(const Call& call) {
  const auto get = [path = call.parameters,
                    caller = call.caller](Engine& engine) -> Result<TaskSnapshot> {
    ASSIGN_OR_RETURN(const TaskId id, named_task(engine, path, caller, Need::look));
    return view_task(engine, id);
  };
  run_on_task(call, &Routes::show_far, get,
              [](const HttpReply& reply, const TaskSnapshot& view) { answer_task(reply, view); });
}

void answer_task(const HttpReply& reply, const TaskSnapshot& view) {
  reply.send(
      {.status = 200, .body = json::render_task(view), .headers = {{"etag", etag_of(view)}}});
}

void Routes::edit_task(const Call& call) {
  const Result<TaskEdit> edit = json::parse_edit(call.request.body);
  if (!edit) return call.reply.send_error(edit.error());
  const auto change = [path = call.parameters, caller = call.caller, edit = *edit,
                       if_match = if_match_of(call.request)](Engine& engine) -> Result<Changed> {
    ASSIGN_OR_RETURN(const TaskId id, named_task(engine, path, caller, Need::produce));
    return if_unchanged(engine, id, if_match, [&]() -> Result<TaskSnapshot> {
      TRY(engine.edit(id, edit));
      return view_task(engine, id);
    });
  };
  run_on_task(call, &Routes::fetch_far, change, answer_moved);
}

void Routes::run_task(const Call& call) {
  if (const auto plain = json::parse_nothing(call.request.body); !plain) {
    return call.reply.send_error(plain.error());
  }
  const auto run_now = [path = call.parameters, caller = call.caller,
                        if_match = if_match_of(call.request)](Engine& engine) -> Result<Changed> {
    ASSIGN_OR_RETURN(const TaskId id, named_task(engine, path, caller, Need::produce));
    return if_unchanged(engine, id, if_match, [&]() -> Result<TaskSnapshot> {
      TRY(engine.run_now(id));
      return view_task(engine, id);
    });
  };
  run_on_task(call, &Routes::fetch_far, run_now, answer_moved);
}

void Routes::cancel_task(const Call& call) {
  const auto cancel = [path = call.parameters, caller = call.caller,
                       if_match = if_match_of(call.request)](Engine& engine) -> Result<Changed> {
    ASSIGN_OR_RETURN(const TaskId id, named_task(engine, path, caller, Need::produce));
    return if_unchanged(engine, id, if_match, [&]() -> Result<TaskSnapshot> {
      TRY(engine.cancel(id));
      return TaskSnapshot{.task = {.id = id, .queue = {}, .payload = {}, .rules = {}}};
    });
  };
  const auto answer = [](const HttpReply& reply, const Changed& cancelled) {
    if (is_refused(reply, cancelled)) return;
    reply.send_json(200, json::render_cancelled(cancelled->task.id));
  };
  run_on_task(call, &Routes::fetch_far, cancel, answer);
}

void Routes::metrics(const Call& call) {
  const HttpReply reply = call.reply;
  const bool is_asked = ask_page([reply](std::string page) {
    reply.send({.status = 200, .content_type = std::string(kMetricsText), .body = std::move(page)});
  });
  if (!is_asked) reply.send_error(overloaded());
}

bool Routes::ask_page(UniqueFunction<void(std::string)> take) {
  // Not through run(): the figures matter most when the store has failed.
  std::optional<OffloadStats> external;
  if (offload_ != nullptr) external = offload_->stats();
  std::optional<DeliveryStats> deliveries;
  if (deliverer_ != nullptr) deliveries = deliverer_->stats();
  return post([this, take = std::move(take), external, deliveries,
               process = process_figures()](Engine& engine) mutable {
    EngineStats stats = engine.stats(kMaxQueueSeries);
    stats.oldest = engine.oldest_queues(kMaxQueueSeries + 1);
    take(render_metrics(stats, http_metrics_.snapshot(), external, deliveries, process));
  });
}

ProcessFigures Routes::process_figures() const {
  ProcessFigures figures = options_.process_figures ? options_.process_figures() : ProcessFigures{};
  // A shard leaves them to its node.
  if (options_.tracer != nullptr && !options_.is_shard) figures.spans = options_.tracer->counts();
  if (options_.disk != nullptr) figures.disk = options_.disk->figures();
  if (options_.backups != nullptr) figures.backup = options_.backups->last();
  return figures;
}

std::string Routes::node_page() const {
  EngineStats no_tasks;
  no_tasks.lateness = no_tasks.commit_time = Histogram().snapshot();
  return render_metrics(no_tasks, http_metrics_.snapshot(), {}, {}, process_figures());
}

void Routes::ready(const Call& call) {
  // Asked without a token, so where there are some the store's own words are for the log.
  const bool tells_cause = options_.access == nullptr;
  std::optional<Error> lost;
  if (offload_ != nullptr) lost = offload_->stats().moves.lost;
  const auto look = [tells_cause, lost](Engine& engine) -> Result<std::string> {
    if (!engine.stopped_by()) {
      if (!lost) {
        const Result<void> intake = engine.expect_intake();
        if (intake) return std::string();
        return tells_cause ? intake.error().message : std::string("the disk is nearly full");
      }
      if (tells_cause) return with_context("the external scheduler", *lost);
      return Error{ErrorCode::unavailable, "the external scheduler has lost far tasks: see the log",
                   ""};
    }
    if (tells_cause) return *engine.stopped_by();
    return Error{ErrorCode::unavailable, "the store has failed: see the log", ""};
  };
  // Workers still need a server that only refuses new tasks, so it is ready.
  run(call.reply, look, [](const HttpReply& reply, const std::string& refusal) {
    reply.send_json(200, json::render_ready(refusal));
  });
}

void Routes::cluster(const Call& call) {
  call.reply.send_json(200, options_.render_cluster
                                ? options_.render_cluster()
                                : R"({"node":null,"nodes":[],"missing":[],"shards":[]})");
}

}  // namespace detent::server
