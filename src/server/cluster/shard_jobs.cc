#include "server/cluster/shard_jobs.h"

#include <span>
#include <utility>
#include <vector>

#include "server/http/http_reply.h"

namespace detent::server {
namespace {

/// Returns false if the client does not take the answer.
bool offer(const net::Responder& responder, const ShardAnswer& answer) {
  return responder.offer(
      {.status = 200, .content_type = "application/octet-stream", .body = encode(answer)});
}

void refuse(const net::Responder& responder, const Error& error) {
  responder.send(http_try_again(error.message));
}

LeaseRequest lease_request(const ShardAsk& ask) {
  LeaseRequest request = job_lease_request();
  request.queue = ask.queues.front();
  request.other_queues.assign(ask.queues.begin() + 1, ask.queues.end());
  return request;
}

void tell_next(Engine& engine, const ShardAsk& ask, const net::Responder& responder) {
  const Result<std::optional<ReadyHead>> head = engine.next_ready(lease_request(ask));
  if (!head) return refuse(responder, head.error());
  // An unread answer does no harm here, because no lease was taken.
  (void)offer(responder, {.answers = {}, .head = *head});
}

void give_back(Engine& engine, const ShardAsk& ask, const net::Responder& responder) {
  release_jobs(engine, ask.leases);
  // Answers whether or not the commit succeeded: the asking node repeats the question.
  engine.after_commit([responder](const Result<void>&) { (void)offer(responder, {}); });
}

}  // namespace

void ShardJobs::handle(const net::HttpRequest& request, const net::Responder& responder) {
  Result<ShardAsk> ask = decode_ask(request.body);
  if (!ask) return responder.send(http_problem(400, ask.error().message));
  const bool is_posted =
      engine_.post([this, ask = *std::move(ask), responder](Engine& engine) mutable {
        switch (ask.kind) {
          case ShardAsk::Kind::calls:
            return call(engine, std::move(ask.calls), responder);
          case ShardAsk::Kind::next:
            return tell_next(engine, ask, responder);
          case ShardAsk::Kind::take:
            return take(engine, ask, responder);
          case ShardAsk::Kind::end_take:
            end_take(engine, ask.number);
            return tell(responder, {});
          case ShardAsk::Kind::give_back:
            return give_back(engine, ask, responder);
          case ShardAsk::Kind::all:
            return tell(responder, {.answers = {}, .head = {}, .all = all_jobs(engine.stats())});
        }
      });
  if (!is_posted) responder.send(http_try_again("the shard is overloaded or closing"));
}

void ShardJobs::call(Engine& engine, std::vector<JobCall> calls, const net::Responder& responder) {
  auto done = [this, responder](Engine& later, std::vector<JobAnswer> answers) {
    ShardAnswer answer{.answers = std::move(answers)};
    later.after_commit(
        [this, responder, answer = std::move(answer)](const Result<void>& committed) {
          // The commit failed, so it is unknown whether the calls took effect.
          if (!committed) return refuse(responder, committed.error());
          tell(responder, answer);
        });
  };
  std::make_shared<JobRun>(engine_, JobVerbs(clock_, tracer_), std::move(calls), std::move(done))
      ->go_on(engine);
}

/// Sends the answer. If no client takes it, its leases are released immediately.
void ShardJobs::tell(const net::Responder& responder, const ShardAnswer& answer) {
  if (offer(responder, answer)) return;
  for (const JobAnswer& one : answer.answers) {
    if (one.lease != JobAnswer::Lease::taken) continue;
    engine_.post_end_of_lease(
        [lease = one.taken.token](Engine& engine) { release_jobs(engine, std::span(&lease, 1)); },
        [lease = one.taken.token](const Engine& engine) {
          return std::string(engine.queue_of(lease));
        });
  }
}

void ShardJobs::take(Engine& engine, const ShardAsk& ask, const net::Responder& responder) {
  std::chrono::milliseconds wait = ask.wait;
  if (ended_.take(ask.number)) wait = std::chrono::milliseconds{0};
  const auto done = [this, number = ask.number,
                     responder](const Result<std::vector<LeasedTask>>& tasks) {
    takes_.erase(number);
    if (!tasks) return refuse(responder, tasks.error());
    ShardAnswer answer;
    for (const LeasedTask& leased : *tasks) {
      answer.answers.push_back(reserved_job(leased, clock_, tracer_));
    }
    tell(responder, answer);
  };
  takes_[ask.number] = engine.lease_or_wait(lease_request(ask), wait, done);
  responder.on_gone([this, number = ask.number] {
    engine_.post_end([this, number](Engine& later) {
      if (const auto it = takes_.find(number); it != takes_.end()) later.abandon_wait(it->second);
    });
  });
}

void ShardJobs::end_take(Engine& engine, std::uint64_t number) {
  if (const auto it = takes_.find(number); it != takes_.end()) {
    return engine.abandon_wait(it->second);
  }
  ended_.add(number);
}

}  // namespace detent::server
