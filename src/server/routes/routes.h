// The HTTP API. Each route converts a request to verbs of the engine, and converts the answer to a
// reply. docs/reference/http.md describes the routes; protocol/json knows the bodies.
//
// routes.cc has the route table and the routes of tasks. The other routes are in these files:
//
// - routes_leases.cc: workers
// - routes_queues.cc: queues
// - routes_whole.cc: figures of the whole server
// - routes_backup.cc: backups
// - routes_watch.cc: event streams
// - routes_schedules.cc: recurring schedules
// - routes_list.cc: the list of tasks
// - routes_batch.cc: verbs over many tasks
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
#include <utility>
#include <vector>

#include "delivery/deliverer.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "engine/thread/engine_thread.h"
#include "net/http_server/http_server.h"
#include "net/http_server/route_table.h"
#include "protocol/json/answer.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/request_codec.h"
#include "protocol/json/schedule_codec.h"
#include "server/access/access.h"
#include "server/access/audit.h"
#include "server/http/http_reply.h"
#include "server/http/list_cursor.h"
#include "server/operate/process_figures.h"
#include "tracing/task_tracer.h"

namespace detent {
class OffloadThread;
}

namespace detent::server {

class Backups;
class DiskWatch;

struct RoutesOptions {
  OffloadThread* offload = nullptr;  // null: tasks are here or nowhere
  /// The origin whose pages may use the API in a browser: "https://example.org"; "*" permits all
  /// origins, "" permits no other origin.
  std::string cors_origin = {};
  /// Null: every client may do everything, if it uses an address or one of `host_names` to reach
  /// the server.
  const Access* access = nullptr;
  std::vector<std::string> host_names = {};
  /// Nodes of a cluster read each other's cursors, so the cursors of a shard are not sealed
  /// (list_cursor.h).
  bool is_shard = false;
  /// Renders the answer of `GET /v1/cluster`; null: this server is not part of a cluster.
  std::function<std::string()> render_cluster = {};
  /// The process figures for /metrics; null on a shard, which reports none.
  std::function<ProcessFigures()> process_figures = {};
  /// The disk of the data folder; null: none. It must outlive the routes.
  const DiskWatch* disk = nullptr;
  /// Null: the tasks are not in a folder, so there is nothing to back up. Must outlive the routes.
  Backups* backups = nullptr;
  TaskTracer* tracer = nullptr;  // null: no traces
};

class EventHub;

/// Thread-safe. `events`, `clock` and the objects in the options must outlive it. Before it is
/// destroyed, the HTTP server must be stopped, and then `engine`, because running requests refer to
/// it.
class Routes {
 public:
  Routes(EngineThread& engine, EventHub& events, const Clock& clock, RoutesOptions options = {});
  /// The routes of a node of a cluster. They answer requests that concern no shard, and refuse all
  /// others with 503.
  Routes(EventHub& events, const Clock& clock, RoutesOptions options = {});
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  /// Adds the figures of this deliverer to /metrics. Call it before the first request.
  void show_deliveries(const Deliverer& deliverer) noexcept { deliverer_ = &deliverer; }
  /// Returns the refusal of a request that does not depend on its body: the route does not exist,
  /// or the caller has no permission. Call it with the head of the request, so that the server need
  /// not receive a useless body.
  std::optional<net::HttpResponse> refuse_unread(const net::HttpRequest& head);
  /// Ends waits for tasks of callers that have lost their permission, and tells them so. Call it
  /// after the tokens were read again. Does not block; the waits end soon after.
  void check_again();
  /// Answers one request, immediately or after the engine has answered. Never blocks.
  void handle(net::HttpRequest request, net::Responder responder);

  /// Requests the /metrics page; it is given on the engine's thread. Returns false if too many
  /// requests wait or the engine is stopping; then it is never given.
  [[nodiscard]] bool ask_page(UniqueFunction<void(std::string)> take);
  /// The /metrics page of a node of a cluster, without its shards.
  std::string node_page() const;

  struct Route {
    std::string_view method;
    std::string_view pattern;  // "/v1/tasks/{id}"
    Need need;
  };
  /// All routes. The views live as long as the program.
  std::vector<Route> all() const;

 private:
  struct Call {
    net::HttpRequest request;
    std::vector<std::string> parameters;
    HttpReply reply;
    Caller caller;
  };
  /// How the query of a target is checked. With `none`, a request with a query is refused.
  enum class Query : std::uint8_t { none, left_to_handler };
  struct Endpoint {
    Need need;  // on the queue in the path; without one, the handler checks each task's queue
    Query query;
    std::function<void(const Call&)> handle;
  };
  using Handler = void (Routes::*)(const Call&);
  void add(std::string_view method, std::string_view pattern, Need need, Handler handler);
  void add_with_query(std::string_view method, std::string_view pattern, Need need,
                      Handler handler);
  /// Answers GET requests of every caller, without an access check.
  void serve(std::string_view pattern, std::function<void(const Call&)> handler);

  Routes(EngineThread* engine, EventHub& events, const Clock& clock, RoutesOptions options);
  /// As EngineThread::post(). Returns false without an engine.
  [[nodiscard]] bool post(EngineThread::Command command, EngineThread::QueueOf queue = {}) {
    return engine_ != nullptr && engine_->post(std::move(command), std::move(queue));
  }

  using QueueVerb = Result<QueueStep> (Engine::*)(const std::string&, std::size_t, QueueCursor);
  /// A running verb over a whole queue.
  struct Sweep {
    HttpReply reply;
    QueueVerb verb;
    std::string queue;
    QueueCursor from = {};
    std::uint64_t count = 0;  // tasks changed so far
  };
  using ScheduleVerb = Result<ScheduleView> (Engine::*)(const std::string&);
  /// A running back-fill.
  struct Backfill {
    HttpReply reply;
    std::string name;
    json::BackfillRange range;         // the range that is still to be filled
    json::BackfillCounts counts = {};  // so far
    /// Set by the I/O thread, read by the engine's thread. Relaxed, because no other data depends
    /// on it.
    std::shared_ptr<std::atomic<bool>> has_client_gone = {};
  };

  /// A page of a list that is being collected.
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

  /// The forecast of one queue, whose tasks are being counted.
  struct QueueForecast {
    HttpReply reply;
    std::string queue;
    Forecast forecast = {};  // so far
    Place after = kListStart;
    int steps = 0;
    std::shared_ptr<std::atomic<bool>> has_client_gone = std::make_shared<std::atomic<bool>>(false);
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
  ProcessFigures process_figures() const;
  void stats_history(const Call& call);
  void events(const Call& call);
  void forecast(const Call& call);
  void wheel(const Call& call);
  void dump(const Call& call);
  void restore(const Call& call);
  void begin_backup(const Call& call);
  void end_backup(const Call& call);
  void metrics(const Call& call);
  void ready(const Call& call);
  void cluster(const Call& call);

  std::optional<net::RouteMatch<Endpoint>> match_of(const net::HttpRequest& request) const;
  HttpReply reply_to(const net::HttpRequest& request,
                     const std::optional<net::RouteMatch<Endpoint>>& match,
                     net::Responder responder);
  /// A worker that waits for a task, and the answer if the wait ends without a task. Without such
  /// an answer, the worker gets an empty list.
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
  /// Checks with the current tokens.
  std::optional<net::HttpResponse> refusal_of(const LeaseWait& wait) const;
  /// Answers requests that need no handler. Fills `caller`, and sets the audit of `reply`.
  std::optional<net::HttpResponse> answer_at_once(
      const net::HttpRequest& request, const std::optional<net::RouteMatch<Endpoint>>& match,
      HttpReply& reply, Caller& caller);
  /// Checks the caller before the content of the request. Fills `caller`.
  std::optional<net::HttpResponse> refusal(const net::HttpRequest& request,
                                           const net::RouteMatch<Endpoint>& match, Caller& caller);
  std::string_view shared_with(const net::HttpRequest& request) const;
  void set_paused(const Call& call, const json::QueuePatch& patch);
  void list_step(Listing listing);
  void count_step(QueueForecast counting);
  template <class T>
  struct Batch;
  template <class T>
  void run_batch(const HttpReply& reply, Batch<T> batch);
  template <class T>
  void fetch_and_run(const HttpReply& reply, Batch<T> batch);
  /// Starts a verb over a whole queue. The answer is sent after the last step.
  void sweep(const Call& call, QueueVerb verb);
  void step(const Sweep& sweep);
  void change_schedule(const Call& call, ScheduleVerb verb);
  void step(const Backfill& backfill);
  void go_on(Backfill backfill, const BackfillStep& done);

  /// Runs `verb` on the engine's thread, in the turn of `queue` if it is given. Passes the result
  /// to `answer` once it is durable. An error at any point is answered as a problem.
  template <class Verb, class Answer>
  void run(HttpReply reply, Verb verb, Answer answer, EngineThread::QueueOf queue = {});
  /// As run() above, but an error of `verb` goes to `otherwise`.
  template <class Verb, class Answer, class Otherwise>
  void run_or(HttpReply reply, Verb verb, Answer answer, Otherwise otherwise,
              EngineThread::QueueOf queue = {});

  /// The action for a task that is not in the store, but may be in the external scheduler.
  using FarVerb = void (Routes::*)(const Call&, TaskId, UniqueFunction<void()>);
  /// As run(), for a verb on the task in the path. If the task is not in the store, `far_verb` runs
  /// first.
  template <class Verb, class Answer>
  void run_on_task(const Call& call, FarVerb far_verb, Verb verb, Answer answer);
  /// Answers with the task of the external scheduler, or looks in the store again.
  void show_far(const Call& call, TaskId id, UniqueFunction<void()> look_again);
  /// Brings the task back from the external scheduler, if it is there, and continues.
  void fetch_far(const Call& call, TaskId id, UniqueFunction<void()> go_on);

  EngineThread* const engine_;  // null on a node of a cluster, whose shards have the engines
  EventHub& events_;
  const RoutesOptions options_;
  OffloadThread* const offload_;
  const Deliverer* deliverer_ = nullptr;
  HttpMetrics http_metrics_;
  const MonotonicTime start_;
  net::RouteTable<Endpoint> table_;
  RefusalLog refusals_;
  AuditLog audits_;
  const CursorSeal seal_;

  // Used only by the engine's thread.
  std::map<LeaseNumber, LeaseWait> lease_waits_;
  LeaseNumber last_lease_ = 0;
};

}  // namespace detent::server
