// The HTTP API: each route turns a request into verbs of the engine and their answer into a reply.
// docs/reference/http.md describes the routes; protocol/json knows the bodies. routes.cc has the
// table and those of tasks; those of workers are in routes_leases.cc, those of queues in
// routes_queues.cc, those that look at everything at once in routes_whole.cc, those that watch in
// routes_watch.cc, those of recurring schedules in routes_schedules.cc, the list of tasks in
// routes_list.cc, verbs over many tasks in routes_batch.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "delivery/deliverer.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "engine/engine_thread.h"
#include "net/http_server.h"
#include "net/route_table.h"
#include "protocol/json/answer.h"
#include "protocol/json/queue_patch.h"
#include "protocol/json/request_parser.h"
#include "protocol/json/schedule_parser.h"
#include "server/access.h"
#include "server/audit.h"
#include "server/http_reply.h"
#include "server/list_cursor.h"
#include "server/process_figures.h"

namespace detent {
class OffloadThread;
}

namespace detent::server {

struct RoutesOptions {
  OffloadThread* offload = nullptr;  // null: tasks are here or nowhere
  /// The origin whose pages may use the API in a browser: "https://example.org", "*" for all, ""
  /// for none.
  std::string cors_origin = {};
  /// Null: whoever reaches the server may do everything, as long as it comes by an address or
  /// one of `host_names`.
  const Access* access = nullptr;
  std::vector<std::string> host_names = {};
  /// Nodes of a cluster read each other's cursors, so they are open to all (list_cursor.h).
  bool is_shard = false;
  /// The answer of `GET /v1/cluster`; null: this server is no cluster's.
  std::function<std::string()> render_cluster = {};
  /// What /metrics and /v1/stats tell of the process; null: nothing, as a shard does.
  std::function<ProcessFigures()> process_figures = {};
};

class EventHub;

/// Thread-safe. `events`, `clock` and what the options name must outlive it; the HTTP server must
/// be stopped, and then `engine`, before it is destroyed: requests under way refer to it.
class Routes {
 public:
  Routes(EngineThread& engine, EventHub& events, const Clock& clock, RoutesOptions options = {});
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  /// /metrics shows what this does, too. To be called before the first request.
  void show_deliveries(const Deliverer& deliverer) noexcept { deliverer_ = &deliverer; }
  /// What a request is refused with whatever its body says: no such route, or who may not. To be
  /// asked with its head, so that nobody need wait for a body that nobody reads.
  std::optional<net::HttpResponse> refuse_unread(const net::HttpRequest& head);
  /// Ends the waits for a task of those who may lease no more, which they are told: the tokens have
  /// been read again. Soon, and without blocking.
  void check_again();
  /// Answers one request, now or once the engine has. Never blocks.
  void handle(net::HttpRequest request, net::Responder responder);

  /// Has the page of /metrics made, and given on the engine's thread. False, and never given, when
  /// too many requests wait, or the engine is stopping.
  [[nodiscard]] bool ask_page(UniqueFunction<void(std::string)> take);

  struct Route {
    std::string_view method;
    std::string_view pattern;  // "/v1/tasks/{id}"
    Need need;
  };
  /// All that are answered; of views that live as long as the program.
  std::vector<Route> all() const;

 private:
  struct Call {
    net::HttpRequest request;
    std::vector<std::string> parameters;
    HttpReply reply;
    Caller caller;
  };
  /// Whose business the query of a target is: where it is nobody's, there may be none.
  enum class Query : std::uint8_t { none, left_to_handler };
  struct Endpoint {
    Need need;  // of the queue in the path; elsewhere the handler checks each task's queue
    Query query;
    std::function<void(const Call&)> handle;
  };
  using Handler = void (Routes::*)(const Call&);
  void add(std::string_view method, std::string_view pattern, Need need, Handler handler);
  void add_with_query(std::string_view method, std::string_view pattern, Need need,
                      Handler handler);
  /// Answers GET to whoever asks.
  void serve(std::string_view pattern, std::function<void(const Call&)> handler);

  using QueueVerb = Result<QueueStep> (Engine::*)(const std::string&, std::size_t, QueueCursor);
  /// A verb over a whole queue that is under way.
  struct Sweep {
    HttpReply reply;
    QueueVerb verb;
    std::string queue;
    QueueCursor from = {};
    std::uint64_t count = 0;  // tasks changed so far
  };
  using ScheduleVerb = Result<ScheduleView> (Engine::*)(const std::string&);
  /// A back-fill that is under way.
  struct Backfill {
    HttpReply reply;
    std::string name;
    json::BackfillRange range;         // what is left of it
    json::BackfillCounts counts = {};  // so far
    /// The I/O thread sets it, the engine's thread reads it; nothing else depends on it, so
    /// relaxed.
    std::shared_ptr<std::atomic<bool>> has_client_gone = {};
  };

  /// A page of a list that is under way.
  struct Listing {
    HttpReply reply;
    Caller caller;
    const CursorSeal* seal = nullptr;  // of this; null: the caller may see everything
    TaskFilter filter;
    std::size_t limit = 0;
    Place after = kListStart;
    std::vector<TaskSnapshot> tasks = {};  // found so far
    std::size_t bytes = 0;                 // of their payloads
    int steps = 0;
  };

  void schedule(const Call& call);
  void schedule_batch(const Call& call);
  void list_tasks(const Call& call);
  void get_task(const Call& call);
  void edit_task(const Call& call);
  void run_task(const Call& call);
  void cancel_task(const Call& call);
  void lease(const Call& call);
  void give_back(const std::vector<LeasedTask>& tasks);
  void complete(const Call& call);
  void fail(const Call& call);
  void extend(const Call& call);
  void release(const Call& call);

  void list_queues(const Call& call);
  void get_queue(const Call& call);
  void change_queue(const Call& call);
  void remove_queue(const Call& call);
  void pause_queue(const Call& call);
  void resume_queue(const Call& call);
  void purge_queue(const Call& call);
  void redrive_queue(const Call& call);

  void list_schedules(const Call& call);
  void get_schedule(const Call& call);
  void put_schedule(const Call& call);
  void remove_schedule(const Call& call);
  void next_of_schedule(const Call& call);
  void preview_schedule(const Call& call);
  void pause_schedule(const Call& call);
  void resume_schedule(const Call& call);
  void trigger_schedule(const Call& call);
  void backfill_schedule(const Call& call);

  void dashboard(const Call& call);

  void cancel_batch(const Call& call);
  void move_batch(const Call& call);

  void stats(const Call& call);
  json::ServerStats server_stats(EngineStats& stats, json::StatsScope scope) const;
  ProcessFigures process_figures() const {
    return options_.process_figures ? options_.process_figures() : ProcessFigures{};
  }
  void stats_history(const Call& call);
  void events(const Call& call);
  void forecast(const Call& call);
  void wheel(const Call& call);
  void dump(const Call& call);
  void restore(const Call& call);
  void metrics(const Call& call);
  void ready(const Call& call);
  void cluster(const Call& call);

  std::optional<net::RouteMatch<Endpoint>> match_of(const net::HttpRequest& request) const;
  HttpReply reply_to(const net::HttpRequest& request,
                     const std::optional<net::RouteMatch<Endpoint>>& match,
                     net::Responder responder);
  /// Who waits for a task, and what such a wait ends with when no task comes; else with none.
  struct LeaseWait {
    std::string authorization;
    std::string queue;
    Engine::WaitId wait = 0;
    std::optional<net::HttpResponse> refusal = {};
  };
  using LeaseNumber = std::uint64_t;
  void lease_or_wait(Engine& engine, const HttpReply& reply, const json::LeaseCall& request,
                     std::string authorization);
  void answer_lease(const HttpReply& reply, LeaseNumber number,
                    const Result<std::vector<LeasedTask>>& tasks);
  /// By the tokens as they are now.
  std::optional<net::HttpResponse> refusal_of(const LeaseWait& wait) const;
  /// What is answered before any handler is asked. Fills `caller`, and has `reply` audit.
  std::optional<net::HttpResponse> answer_at_once(
      const net::HttpRequest& request, const std::optional<net::RouteMatch<Endpoint>>& match,
      HttpReply& reply, Caller& caller);
  /// What is wrong with who asks, before it is looked at what for. Fills `caller`.
  std::optional<net::HttpResponse> refusal(const net::HttpRequest& request,
                                           const net::RouteMatch<Endpoint>& match, Caller& caller);
  std::string_view shared_with(const net::HttpRequest& request) const;
  void set_paused(const Call& call, const json::QueuePatch& patch);
  void list_step(Listing listing);
  template <class T>
  struct Batch;
  template <class T>
  void run_batch(const HttpReply& reply, Batch<T> batch);
  template <class T>
  void fetch_and_run(const HttpReply& reply, Batch<T> batch);
  /// Begins a verb over a whole queue, whose answer comes with its last step.
  void sweep(const Call& call, QueueVerb verb);
  void step(const Sweep& sweep);
  void change_schedule(const Call& call, ScheduleVerb verb);
  void step(const Backfill& backfill);
  void go_on(Backfill backfill, const BackfillStep& done);

  /// Runs `verb` on the engine's thread, in the turn of `queue` if that is given, and hands its
  /// result, once it is durable, to `answer`; an error on either way is answered as a problem.
  template <class Verb, class Answer>
  void run(HttpReply reply, Verb verb, Answer answer, EngineThread::QueueOf queue = {});
  /// The same, but an error of `verb` goes to `otherwise`.
  template <class Verb, class Answer, class Otherwise>
  void run_or(HttpReply reply, Verb verb, Answer answer, Otherwise otherwise,
              EngineThread::QueueOf queue = {});

  /// What is done about a task that is not here, and may be with the other system.
  using FarVerb = void (Routes::*)(const Call&, TaskId, UniqueFunction<void()>);
  /// run() for a verb on the task that the path names; when it is not here, `far_verb` first.
  template <class Verb, class Answer>
  void run_on_task(const Call& call, FarVerb far_verb, Verb verb, Answer answer);
  /// Answers with the task as it is there, or looks again here.
  void show_far(const Call& call, TaskId id, UniqueFunction<void()> look_again);
  /// Has it put here, if it is there, then goes on.
  void fetch_far(const Call& call, TaskId id, UniqueFunction<void()> go_on);

  EngineThread& engine_;
  EventHub& events_;
  const RoutesOptions options_;
  OffloadThread* const offload_;
  const Deliverer* deliverer_ = nullptr;
  HttpMetrics http_metrics_;
  const MonotonicTime start_;
  net::RouteTable<Endpoint> table_;
  RefusalLog refusals_;
  const CursorSeal seal_;

  // Touched only by the engine's thread.
  std::map<LeaseNumber, LeaseWait> lease_waits_;
  LeaseNumber last_lease_ = 0;
};

}  // namespace detent::server
