// all_calls URL: makes each call of the C++ client once, with all arguments, for openapi_test.py.
// It prints each result as a line of JSON: {"call": NAME, "value": RESULT}.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "detent/client.h"

namespace detent {
namespace {

using client::Payload;
using client::TaskName;
using namespace std::chrono_literals;

const client::TaskKey kKey{.queue = "q", .key = "k"};
const WallTime kNow{1'767'323'045'678ms};
const client::Backoff kBackoff{.initial = 1s, .max = 1min};
const Payload kBytes{.kind = Payload::Kind::bytes, .data = "b"};

/// Writes results as JSON. Writes only whether a text has characters. The functions are members, so
/// that each can call those after it.
struct Json {
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  static std::string text(T value) { return std::to_string(static_cast<std::int64_t>(value)); }
  static std::string text(const std::string& value) { return value.empty() ? "\"\"" : "\"x\""; }
  static std::string text(std::chrono::milliseconds value) { return std::to_string(value.count()); }
  static std::string text(WallTime value) {
    return std::to_string(value.time_since_epoch().count());
  }
  static std::string text(const Payload& value) { return text(value.data); }
  /// Joins members: `object("id", task.id, "queue", task.queue)`.
  static std::string members() { return ""; }
  template <class T, class... More>
  static std::string members(std::string_view name, const T& value, const More&... more) {
    const std::string rest = members(more...);
    return "\"" + std::string(name) + "\": " + text(value) + (rest.empty() ? "" : ", ") + rest;
  }
  template <class... Members>
  static std::string object(const Members&... all) {
    return "{" + members(all...) + "}";
  }

  static std::string text(const client::Header& header) { return text(header.name + header.value); }
  static std::string text(const client::Backoff& backoff) {
    return object("initial", backoff.initial, "max", backoff.max);
  }
  static std::string text(const client::ScheduledTask& task) {
    return object("id", task.id, "queue", task.queue, "state", task.state, "due_at", task.due_at,
                  "was_there", task.was_there);
  }
  static std::string text(const client::Task& task) {
    return object("id", task.id, "queue", task.queue, "state", task.state, "due_at", task.due_at,
                  "created_at", task.created_at, "payload", task.payload, "key", task.key,
                  "priority", task.priority, "attempts", task.attempts, "last_error",
                  task.last_error);
  }
  static std::string text(const client::TaskPage& page) {
    return object("tasks", page.tasks, "cursor", page.cursor);
  }
  static std::string text(const client::LeasedTask& task) {
    return object("id", task.id, "lease", task.lease, "attempt", task.attempt, "queue", task.queue,
                  "key", task.key, "payload", task.payload, "priority", task.priority, "due_at",
                  task.due_at, "lease_until", task.lease_until, "lateness", task.lateness,
                  "headers", task.headers);
  }
  static std::string text(const client::QueueSettings& settings) {
    return object("paused", settings.paused, "max_attempts", settings.max_attempts,
                  "visibility_timeout", settings.visibility_timeout, "backoff", settings.backoff,
                  "retention", settings.retention, "key_retention", settings.key_retention,
                  "max_tasks", settings.max_tasks, "max_bytes", settings.max_bytes, "rate",
                  settings.rate, "concurrency", settings.concurrency, "webhook", settings.webhook,
                  "sink", settings.sink, "partitions", settings.partitions);
  }
  static std::string text(const client::Queue& queue) {
    return object("name", queue.name, "scheduled", queue.scheduled, "ready", queue.ready, "leased",
                  queue.leased, "dead", queue.dead, "oldest_ready_age", queue.oldest_ready_age,
                  "bytes", queue.bytes, "settings", queue.settings);
  }
  static std::string text(const client::Schedule& schedule) {
    return object("name", schedule.name, "state", schedule.state, "words", schedule.words, "queue",
                  schedule.queue, "next_at", schedule.next_at, "made", schedule.made);
  }
  static std::string text(const ClientError& error) { return text(error.message); }
  template <class T>
  static std::string text(const ClientResult<T>& result) {
    return result ? text(result.value()) : text(result.error());
  }
  template <class T>
  static std::string text(const std::optional<T>& value) {
    return value ? text(*value) : "null";
  }
  template <class T>
  static std::string text(const std::vector<T>& values) {
    std::string all;
    for (const T& value : values) all += (all.empty() ? "" : ", ") + text(value);
    return "[" + all + "]";
  }
};

// ---- the calls ----

template <class T>
void check(const ClientResult<T>& result) {
  if (result.has_value()) return;
  std::cerr << result.error().message << '\n';
  std::exit(1);
}

template <class T>
void say(std::string_view call, const ClientResult<T>& result) {
  check(result);
  std::cout << R"({"call": ")" << call << R"(", "value": )" << Json::text(result.value()) << "}\n";
}

void call_tasks(Client& client) {
  const client::NewTask task{.queue = "q",
                             .payload = {.data = "1"},
                             .due = 1s,
                             .key = "k",
                             .priority = 7,
                             .max_attempts = 2,
                             .visibility_timeout = 30s,
                             .backoff = kBackoff,
                             .webhook = "http://a/",
                             .headers = {{.name = "X-A", .value = "b"}},
                             .on_key = client::NewTask::OnKey::replace,
                             .max_wait = 60s};
  const std::array<client::NewTask, 2> tasks{task, {.queue = "q", .payload = kBytes, .due = kNow}};
  say("schedule", client.schedule(tasks[0]));
  check(client.schedule(tasks[1]));
  check(client.schedule_many(tasks));
  say("list", client.list({.queue = "q",
                           .state = client::TaskState::dead,
                           .key = "k",
                           .due_after = kNow,
                           .due_before = kNow,
                           .limit = 5}));
  check(client.list({.cursor = "c"}));
  for (const TaskName& name : {TaskName{std::uint64_t{256}}, TaskName{kKey}}) {
    const std::array<TaskName, 1> names{name};
    say("get", client.get(name));
    check(client.cancel(name));
    check(client.cancel_many(names));
    for (const client::Due& due : {client::Due{1s}, client::Due{kNow}}) {
      say("move", client.move(name, due));
      check(client.move_many(names, due));
    }
  }
  say("run_now", client.run_now(256));
  check(client.stats());
}

void call_leases(Client& client) {
  const std::array<std::string, 2> leases{"1-1", "1-2"};
  say("lease", client.lease("q", {.max = 5, .wait = 1s, .visibility_timeout = 30s, .worker = "w"}));
  check(client.complete(leases));
  check(client.fail(leases, {.error = "e", .delay = 1s}));
  check(client.fail(leases, {.error = "e", .final = true}));
  check(client.extend(leases, 30s));
  check(client.release(leases, {.delay = 1s, .priority = 7}));
}

void call_queues(Client& client) {
  say("queues", client.queues());
  say("queue", client.queue("q"));
  client::QueueChange change;
  change.paused = true;
  change.max_attempts = 2;
  change.visibility_timeout = 30s;
  change.backoff = kBackoff;
  change.retention = 1s;
  change.key_retention = 1s;
  change.max_tasks = 5;
  change.max_bytes = 5;
  change.rate = 5;
  change.concurrency = 5;
  change.webhook = "http://a/";
  change.sink = "s";
  change.partitions = 2;
  say("change_queue", client.change_queue("q", change));
  check(client.remove_queue("q"));
  say("pause", client.pause("q"));
  say("resume", client.resume("q"));
  say("purge", client.purge("q"));
  say("redrive", client.redrive("q"));
}

void call_schedules(Client& client) {
  client::NewSchedule schedule{.rule = client::CronRule{"* * * * *"},
                               .time_zone = "Asia/Shanghai",
                               .queue = "q",
                               .payload = {.data = "1"},
                               .priority = 7,
                               .max_attempts = 2,
                               .visibility_timeout = 30s,
                               .backoff = kBackoff,
                               .count = 5,
                               .start = kNow,
                               .end = kNow + 24h,
                               .jitter = 1s,
                               .misfire = client::NewSchedule::Misfire::all,
                               .misfire_grace = 1s,
                               .misfire_limit = 5,
                               .overlap = client::NewSchedule::Overlap::skip};
  say("put_schedule", client.put_schedule("s", schedule));
  schedule.rule = client::IntervalRule{.every = 1min, .anchor = kNow};
  schedule.payload = kBytes;
  check(client.put_schedule("s", schedule));
  schedule.rule =
      client::CalendarRule{.every = 2, .month_end = client::CalendarRule::MonthEnd::skip};
  check(client.put_schedule("s", schedule));
  say("get_schedule", client.get_schedule("s"));
  say("schedules", client.schedules());
  say("next_occurrences", client.next_occurrences("s", 3));
  say("pause_schedule", client.pause_schedule("s"));
  say("resume_schedule", client.resume_schedule("s"));
  say("trigger_schedule", client.trigger_schedule("s"));
  check(client.remove_schedule("s"));
}

int call_all(const std::string& url) {
  ClientResult<Client> made = Client::create(url, {.retry_for = 0ms});
  check(made);
  Client client = std::move(made).value();
  call_tasks(client);
  call_leases(client);
  call_queues(client);
  call_schedules(client);
  return 0;
}

}  // namespace
}  // namespace detent

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: all_calls URL\n";
    return 2;
  }
  return detent::call_all(argv[1]);
}
