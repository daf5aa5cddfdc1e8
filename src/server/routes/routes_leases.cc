// The routes of workers: leases, the wait for leases, and the results of work.
//
// The engine keeps the wait. This file keeps the waiting caller, so that the wait ends when the
// client disconnects or its token loses the permission. It also returns tasks that were leased for
// a client that has gone.
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/json/answer_codec.h"
#include "protocol/json/request_codec.h"
#include "server/routes/routes.h"
#include "server/routes/routes_run.h"

namespace detent::server {
namespace {

using LeaseOutcomes = std::vector<Result<LeaseOutcome>>;

/// Calls `verb` once for each valid lease. Returns a conflict for each invalid lease, and for each
/// lease of a queue from which the caller may not take tasks.
template <class Verb>
Result<LeaseOutcomes> each_lease(Engine& engine, const Caller& caller,
                                 const json::LeaseList& leases, Verb verb) {
  LeaseOutcomes outcomes;
  outcomes.reserve(leases.size());
  for (const std::optional<LeaseToken>& lease : leases) {
    const bool is_own =
        lease && (caller.may_all() || caller.may(Need::consume, engine.queue_of(*lease)));
    outcomes.push_back(is_own ? verb(*lease) : Result<LeaseOutcome>(LeaseOutcome::conflict));
    engine.hand_out_due();
  }
  return outcomes;
}

void answer_outcomes(const HttpReply& reply, const LeaseOutcomes& outcomes) {
  reply.send_json(200, json::render_lease_results(outcomes));
}

/// Answers with the outcomes, and traces the ends of the leases unless `tracer` is null.
auto answer_ends(const json::LeaseList& leases, SpanStep step, TaskTracer* tracer) {
  return [tracer, step, began = tracer != nullptr ? tracer->now() : WallInstant{},
          leases = tracer != nullptr ? leases : json::LeaseList()](const HttpReply& reply,
                                                                   const LeaseOutcomes& outcomes) {
    for (std::size_t i = 0; i < leases.size(); ++i) {
      const bool is_over = outcomes[i] && *outcomes[i] != LeaseOutcome::conflict;
      if (is_over) tracer->settled(*leases[i], step, began);
    }
    answer_outcomes(reply, outcomes);
  };
}

}  // namespace

void Routes::lease(const Call& call) {
  Result<json::LeaseCall> request = json::parse_lease(call.parameters.front(), call.request.body);
  if (!request) return call.reply.send_error(request.error());
  EngineThread::QueueOf queue = for_queue(request->lease.queue);
  auto command = [this, reply = call.reply, request = *std::move(request),
                  authorization =
                      std::string(call.request.header("authorization"))](Engine& engine) mutable {
    lease_or_wait(engine, reply, request, std::move(authorization));
  };
  if (!post(std::move(command), std::move(queue))) call.reply.send_error(overloaded());
}

void Routes::lease_or_wait(Engine& engine, const HttpReply& reply, const json::LeaseCall& request,
                           std::string authorization) {
  const LeaseNumber number = ++last_lease_;
  if (request.wait > std::chrono::milliseconds{0} && options_.access != nullptr) {
    LeaseWait waiting{.authorization = std::move(authorization), .queue = request.lease.queue};
    // Since it was let in, the tokens may have been read again.
    if (auto refused = refusal_of(waiting)) return reply.send(*std::move(refused));
    lease_waits_.emplace(number, std::move(waiting));
  }
  const Engine::WaitId wait = engine.lease_or_wait(
      request.lease, request.wait, [this, reply, number](Result<std::vector<LeasedTask>> tasks) {
        answer_lease(reply, number, tasks);
      });
  if (const auto it = lease_waits_.find(number); it != lease_waits_.end()) it->second.wait = wait;
  // A worker that goes away while it waits must not be given a task, however many wait.
  reply.on_gone(
      [this, wait] { engine_->post_end([wait](Engine& later) { later.abandon_wait(wait); }); });
}

void Routes::answer_lease(const HttpReply& reply, LeaseNumber number,
                          const Result<std::vector<LeasedTask>>& tasks) {
  auto waited = lease_waits_.extract(number);
  if (!tasks) return reply.send_error(tasks.error());
  if (tasks->empty() && waited && waited.mapped().refusal) {
    return reply.send(*std::move(waited.mapped().refusal));
  }
  if (!tasks->empty()) {
    if (reply.offer_json(200, json::render_leased_tasks(*tasks))) {
      if (options_.tracer == nullptr) return;
      for (const LeasedTask& task : *tasks) options_.tracer->leased(task);
      return;
    }
    give_back(*tasks);
    // After a client has closed its sending side, the server cannot tell whether it still reads.
    return reply.send_instead(200, json::render_leased_tasks({}));
  }
  reply.send_json(200, json::render_leased_tasks({}));
}

/// No client has received these leases.
void Routes::give_back(const std::vector<LeasedTask>& tasks) {
  std::vector<LeaseToken> leases;
  for (const LeasedTask& task : tasks) leases.push_back(task.lease);
  engine_->post_end_of_lease(
      [leases = std::move(leases)](Engine& engine) {
        // One that has run out is back already.
        for (const LeaseToken lease : leases) (void)engine.release(lease);
      },
      for_queue(tasks.front().task.queue));
}

void Routes::complete(const Call& call) {
  Result<json::LeaseList> leases = json::parse_complete(call.request.body);
  if (!leases) return call.reply.send_error(leases.error());
  EngineThread::QueueOf queue = for_leases(*leases);
  auto answer = answer_ends(*leases, SpanStep::complete, options_.tracer);
  const auto complete_all = [leases = *std::move(leases), caller = call.caller](Engine& engine) {
    return each_lease(engine, caller, leases,
                      [&engine](LeaseToken lease) { return engine.complete(lease); });
  };
  run(call.reply, complete_all, std::move(answer), std::move(queue));
}

void Routes::fail(const Call& call) {
  Result<json::FailCall> request = json::parse_fail(call.request.body);
  if (!request) return call.reply.send_error(request.error());
  EngineThread::QueueOf queue = for_leases(request->leases);
  auto answer = answer_ends(request->leases, SpanStep::fail, options_.tracer);
  const auto fail_all = [request = *std::move(request), caller = call.caller](Engine& engine) {
    return each_lease(engine, caller, request.leases, [&](LeaseToken lease) {
      if (request.final) return engine.bury(lease, request.error);
      return engine.fail({.lease = lease, .delay = request.delay, .error = request.error});
    });
  };
  run(call.reply, fail_all, std::move(answer), std::move(queue));
}

void Routes::extend(const Call& call) {
  Result<json::ExtendCall> request = json::parse_extend(call.request.body);
  if (!request) return call.reply.send_error(request.error());
  EngineThread::QueueOf queue = for_leases(request->leases);
  const auto extend_all = [request = *std::move(request), caller = call.caller](Engine& engine) {
    return each_lease(engine, caller, request.leases,
                      [&](LeaseToken lease) { return engine.extend(lease, request.by); });
  };
  run(call.reply, extend_all, answer_outcomes, std::move(queue));
}

void Routes::release(const Call& call) {
  Result<json::ReleaseCall> request = json::parse_release(call.request.body);
  if (!request) return call.reply.send_error(request.error());
  EngineThread::QueueOf queue = for_leases(request->leases);
  auto answer = answer_ends(request->leases, SpanStep::release, options_.tracer);
  const auto release_all = [request = *std::move(request), caller = call.caller](Engine& engine) {
    return each_lease(engine, caller, request.leases, [&](LeaseToken lease) {
      return engine.release(lease, request.delay, request.priority);
    });
  };
  run(call.reply, release_all, std::move(answer), std::move(queue));
}

}  // namespace detent::server
