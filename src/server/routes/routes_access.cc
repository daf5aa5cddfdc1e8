// Access control of routes. It checks each request once, before its handler. If the path names no
// queue, the handler checks each task after reading the task's queue.
#include <utility>

#include "server/access/browser_guard.h"
#include "server/routes/routes.h"
#include "server/routes/routes_run.h"

namespace detent::server {
namespace {

constexpr std::string_view kQueuePath = "/v1/queues/{queue}";

net::HttpResponse token_needed() {
  net::HttpResponse response = http_problem(401, "a token is needed: Authorization: Bearer dt_...");
  response.headers.emplace_back("www-authenticate", "Bearer");
  return response;
}

}  // namespace

std::optional<net::HttpResponse> Routes::refusal(const net::HttpRequest& request,
                                                 const net::RouteMatch<Endpoint>& match,
                                                 Caller& caller) {
  if (!is_from_own_page(request, options_.cors_origin)) {
    return http_problem(403, "a web page of " + std::string(request.header("origin")) +
                                 " cannot change anything here: allow one site with --cors-origin");
  }
  if (options_.access == nullptr) {
    if (is_own_name(request, options_.host_names)) return std::nullopt;
    return http_problem(403, "unknown host name " + std::string(request.header("host")) +
                                 ": use the address of the server, or start it with --host-name");
  }
  const Need need = match.handler->need;
  if (need == Need::nothing) return std::nullopt;
  const std::optional<Caller> known = options_.access->identify(request.header("authorization"));
  if (!known) {
    refusals_.note(request.peer);
    return token_needed();
  }
  caller = *known;
  const bool is_of_one_queue = match.pattern.starts_with(kQueuePath);
  const bool is_allowed =
      is_of_one_queue ? caller.may(need, match.parameters.front()) : caller.may_somewhere(need);
  if (is_allowed) return std::nullopt;
  return http_error(forbidden(need, is_of_one_queue ? match.parameters.front() : ""));
}

std::optional<net::HttpResponse> Routes::refusal_of(const LeaseWait& wait) const {
  const std::optional<Caller> known = options_.access->identify(wait.authorization);
  if (!known) return token_needed();
  const Result<void> allowed = known->require(Need::consume, wait.queue);
  if (!allowed) return http_error(allowed.error());
  return std::nullopt;
}

void Routes::check_again() {
  if (engine_ == nullptr) return;  // no worker waits here
  engine_->post_end([this](Engine& engine) {
    for (auto& [number, waiting] : lease_waits_) {
      waiting.refusal = refusal_of(waiting);
      if (waiting.refusal) engine.abandon_wait(waiting.wait);
    }
  });
}

Result<void> permit(Engine& engine, const Caller& caller, Need need, TaskId id) {
  if (caller.may_all()) return ok();
  ASSIGN_OR_RETURN(const TaskSnapshot view, engine.get(id));
  return permit(caller, need, view.task);
}

Result<void> permit(const Caller& caller, Need need, const Task& task) {
  if (!caller.may(Need::look, task.queue)) return no_such_task(task.id);
  return caller.require(need, task.queue);
}

}  // namespace detent::server
