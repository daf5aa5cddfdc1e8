// The routes for monitoring: event streams, the history of the figures, and the present figures.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "protocol/json/queue_codec.h"
#include "protocol/json/stats_point.h"
#include "server/testing/routes_fixture.h"
#include "server/watch/change_collector.h"
#include "tests/support/raw_socket.h"

namespace detent::server {
namespace {

using test::RawSocket;

struct Event {
  std::string id;
  std::string name;
  std::string data;
  std::string text;  // as it came
};

/// Reads a stream of events as a browser does.
class EventClient {
 public:
  EventClient(std::uint16_t port, const std::string& target, const std::string& last_id = "",
              int receive_buffer_bytes = 0)
      : socket_(port, receive_buffer_bytes) {
    std::string request = "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n";
    if (!last_id.empty()) request += "Last-Event-ID: " + last_id + "\r\n";
    socket_.send(request + "\r\n");
  }

  /// Reads up to and including the empty line.
  std::string read_head() {
    std::string head;
    while (!head.ends_with("\r\n\r\n")) {
      const std::string byte = socket_.read(1);
      if (byte.empty()) break;
      head += byte;
    }
    return head;
  }
  /// Blocks until there is an event. The event is empty if the stream has ended.
  Event next() {
    if (!std::exchange(has_head_, true)) read_head();
    std::size_t end = 0;
    while ((end = text_.find("\n\n")) == std::string::npos) {
      if (!read_chunk()) return {};
    }
    Event event{.id = {}, .name = {}, .data = {}, .text = text_.substr(0, end + 2)};
    text_.erase(0, end + 2);
    event.id = line_of(event.text, "id: ");
    event.name = line_of(event.text, "event: ");
    event.data = line_of(event.text, "data: ");
    return event;
  }
  void close() { socket_.close(); }

 private:
  static std::string line_of(const std::string& text, const std::string& name) {
    const std::size_t at = ("\n" + text).find("\n" + name);
    if (at == std::string::npos) return "";
    return text.substr(at + name.size(), text.find('\n', at) - at - name.size());
  }
  bool read_chunk() {
    std::string line;
    while (!line.ends_with("\r\n")) {
      const std::string byte = socket_.read(1);
      if (byte.empty()) return false;
      line += byte;
    }
    const std::size_t size = std::strtoul(line.c_str(), nullptr, 16);
    text_ += socket_.read(size);
    socket_.read(2);
    return size > 0;
  }

  RawSocket socket_;
  bool has_head_ = false;
  std::string text_;
};

/// The value of the first JSON member with this name after `within`, as text without quotes.
std::string member(const std::string& data, const std::string& name,
                   const std::string& within = "") {
  const std::string key = "\"" + name + "\":";
  const std::size_t at = data.find(key, within.empty() ? 0 : data.find("\"" + within + "\":"));
  if (at == std::string::npos) return "";
  const std::string value = data.substr(at + key.size());
  if (value.starts_with('"')) return value.substr(1, value.find('"', 1) - 1);
  return value.substr(0, value.find_first_of(",}]"));
}
bool has_latency(const std::string& data, const std::string& within = "") {
  return member(data, "lateness_us", within).starts_with('{');
}

class RoutesWatch : public RoutesTest {
 protected:
  EventClient watch(const std::string& query = "", const std::string& last_id = "") {
    return {http_->port(), "/v1/events" + query, last_id};
  }
  /// A stream of changes whose beginning has been read; its id is put into `last_id_`.
  EventClient watch_tasks(const std::string& more = "") {
    EventClient client = watch("?types=task" + more);
    last_id_ = client.next().id;
    return client;
  }
  /// The change of an event as "ID CHANGE STATE". The first task has the ID 1.
  static std::string told(const Event& event) {
    if (event.name != "task") return event.name + " " + event.data;
    const std::uint64_t id = std::stoull(member(event.data, "id")) >> TaskId::kShardBits;
    return std::to_string(id) + " " + member(event.data, "change") + " " +
           member(event.data, "state");
  }
  /// Moves time by the period between two looks at the changes.
  void look_again() { advance(ChangeCollector::kTakePeriod); }
  void await_streams(std::size_t count) const {
    while (events_->streams() != count) std::this_thread::yield();
  }
  void begin_with(EventHubOptions options) {
    http_->stop(0ms);
    events_->stop();
    events_ = std::make_unique<EventHub>(*engine_, changes_, clock_, options);
    routes_ = std::make_unique<Routes>(*engine_, *events_, clock_);
    listen(10s);
  }

  std::string last_id_;
};

TEST_F(RoutesWatch, AStreamBeginsWithThePlaceAndTheFigures) {
  schedule(R"({"queue":"q","delay":"1h"})");
  await_rest();  // the first question of the hub is answered, maybe with figures before the task
  EventClient client = watch();
  const std::string head = client.read_head();
  EXPECT_NE(head.find("Content-Type: text/event-stream\r\n"), std::string::npos) << head;
  EXPECT_NE(head.find("cache-control: no-store\r\n"), std::string::npos) << head;
  EventClient other = watch();
  EXPECT_EQ(other.next().text, "retry: 2000\nid: 1577836800000-0\n\n");
  const Event figures = other.next();
  EXPECT_EQ(figures.name, "stats");
  EXPECT_EQ(figures.id, "");
  EXPECT_EQ(member(figures.data, "scheduled", "tasks"), "1");
}

TEST_F(RoutesWatch, FiguresComeEachSecondAndAreOfThatSecond) {
  EventClient client = watch("?types=stats");
  client.next();
  EXPECT_EQ(client.next().name, "stats");
  for (int second = 1; second <= 3; ++second) {
    for (int i = 0; i < second; ++i) schedule(R"({"queue":"q"})");
    advance(1s);
    const std::string data = client.next().data;
    EXPECT_EQ(member(data, "accepted"), std::to_string(second));
    EXPECT_EQ(member(data, "span_ms"), "1000");
    EXPECT_EQ(member(data, "fired"), std::to_string(second));
    EXPECT_EQ(member(data, "span_ms", "recent"), std::to_string(1'000 * second));
    EXPECT_TRUE(has_latency(data, "recent"));
  }
}

TEST_F(RoutesWatch, TheRecentFiguresAreOfTenSeconds) {
  EventClient client = watch("?types=stats");
  client.next();
  client.next();
  std::string data;
  for (int second = 1; second <= 15; ++second) {
    advance(1s);
    data = client.next().data;
  }
  EXPECT_EQ(member(data, "span_ms", "recent"), "10000");
}

TEST_F(RoutesWatch, ChangesOfTasksAreToldInOrderWithRisingIds) {
  EventClient client = watch_tasks();
  schedule(R"({"queue":"q","delay":"2s"})");
  look_again();
  const Event first = client.next();
  EXPECT_EQ(told(first), "1 scheduled scheduled");
  EXPECT_EQ(first.id, "1577836800000-1");
  advance(2s);
  look_again();
  EXPECT_EQ(told(client.next()), "1 ready ready");
  const std::string lease = this->lease("q").front().lease;
  post("/v1/leases/complete", R"({"leases":[")" + lease + R"("]})");
  look_again();
  EXPECT_EQ(told(client.next()), "1 leased leased");
  const Event last = client.next();
  EXPECT_EQ(told(last), "1 completed completed");
  EXPECT_EQ(last.id, "1577836800000-4");
}

TEST_F(RoutesWatch, AStreamMayBeOfOneQueue) {
  EventClient client = watch_tasks("&queue=b");
  schedule(R"({"queue":"a","delay":"1h"})");
  schedule(R"({"queue":"b","delay":"1h"})");
  look_again();
  EXPECT_EQ(told(client.next()), "2 scheduled scheduled");
}

TEST_F(RoutesWatch, WhoComesBackInAMinuteHasMissedNothing) {
  EventClient client = watch_tasks();
  client.close();
  await_streams(0);
  schedule(R"({"queue":"q","delay":"1h"})");
  advance(59s);
  schedule(R"({"queue":"q","delay":"1h"})");
  EventClient again = watch("?types=task", last_id_);
  EXPECT_EQ(again.next().text, "retry: 2000\n\n");
  look_again();
  EXPECT_EQ(told(again.next()), "1 scheduled scheduled");
  EXPECT_EQ(told(again.next()), "2 scheduled scheduled");
}

TEST_F(RoutesWatch, WhoComesBackLaterIsToldThatItMissedSome) {
  EventClient client = watch_tasks();
  client.close();
  await_streams(0);
  advance(0s);
  advance(61s);
  EXPECT_FALSE(changes_.is_watched());
  schedule(R"({"queue":"q","delay":"1h"})");
  EventClient again = watch("?types=task", last_id_);
  EXPECT_EQ(told(again.next()), R"(missed {"missed":null})");
  schedule(R"({"queue":"q","delay":"1h"})");
  look_again();
  EXPECT_EQ(told(again.next()), "2 scheduled scheduled");
}

TEST_F(RoutesWatch, TheEngineIsWatchedOnlyForWhoWantsChanges) {
  await_rest();
  EXPECT_FALSE(changes_.is_watched());
  EventClient of_stats = watch("?types=stats");
  of_stats.next();
  of_stats.next();
  EXPECT_FALSE(changes_.is_watched());
  EventClient of_tasks = watch_tasks();
  await_rest();
  EXPECT_TRUE(changes_.is_watched());
}

TEST_F(RoutesWatch, AQuietStreamShowsThatItLives) {
  EventClient client = watch_tasks();
  advance(14s);
  advance(1s);
  EXPECT_EQ(client.next().text, ": still here\n\n");
  advance(15s);
  EXPECT_EQ(client.next().text, ": still here\n\n");
}

TEST_F(RoutesWatch, SoManyStreamsAndNoMore) {
  begin_with({.max_streams = 2});
  EventClient first = watch_tasks();
  EventClient second = watch_tasks();
  expect_problem(send("GET", "/v1/events"), 503, {"limit of open event streams reached: 2"});
  first.close();
  await_streams(1);
  EventClient third = watch_tasks();
  EXPECT_NE(last_id_, "");
}

TEST_F(RoutesWatch, OneMayNotHaveAllStreams) {
  begin_with({.max_streams = 10, .max_streams_of_one = 2});
  EventClient first = watch_tasks();
  EventClient second = watch_tasks();
  expect_problem(send("GET", "/v1/events"), 503, {"address 127.0.0.1", "2"});
  second.close();
  await_streams(1);
  EventClient third = watch_tasks();
  EXPECT_NE(last_id_, "");
}

TEST_F(RoutesWatch, HeadOpensNoStream) {
  RawSocket client(http_->port());
  client.send("HEAD /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.read(15), "HTTP/1.1 200 OK");
  await_streams(0);
}

TEST_F(RoutesWatch, ParametersAreReadStrictly) {
  const struct {
    std::string target;
    std::string field;
  } refused[] = {{"/v1/events?types=stats,tasks", "types"},
                 {"/v1/events?types=", "types"},
                 {"/v1/events?queue=", "queue"},
                 {"/v1/events?queu=q", "queu"},
                 {"/v1/stats/history?span=2d", "span"},
                 {"/v1/stats/history?step=15s", "step"},
                 {"/v1/stats/history?bins=3", "bins"},
                 {"/v1/stats/history?queue=q&span=2d", "span"},
                 {"/v1/stats?queues=x", "queues"},
                 {"/v1/stats?queue=x", "queue"}};
  for (const auto& [target, field] : refused) {
    expect_problem(send("GET", target), 400, {"\"" + field + "\""});
  }
  expect_problem(send("GET", "/v1/stats?queues=x"), 400, {"an integer from 0 to "});
}

TEST_F(RoutesWatch, AStopEndsTheStreams) {
  EventClient client = watch_tasks();
  events_->stop();
  EXPECT_EQ(client.next().text, "");
  expect_problem(send("GET", "/v1/events"), 503, {"stopping"});
  EXPECT_EQ(send("GET", "/v1/stats").status, 200);
}

// Events that a client does not read are kept up to a limit. Then its connection is closed, and all
// other clients continue.
TEST_F(RoutesWatch, AClientThatReadsNothingHoldsNobodyUp) {
  EventClient slow(http_->port(), "/v1/events?types=task", "", 4096);
  await_streams(1);
  std::string batch = "[";
  for (std::size_t i = 0; i < 2 * ChangeReader::kMaxPerSecond; ++i) {
    batch += std::string(i == 0 ? "" : ",") + R"({"queue":")" + std::string(200, 'q') +
             R"(","delay":"1000h"})";
  }
  batch += "]";
  std::uint64_t accepted = 0;
  // A stream gets 75 kB a second at most: more than the system keeps of it, and our bound.
  for (int second = 0; second < 400 && events_->streams() > 0; ++second) {
    ASSERT_EQ(post("/v1/tasks/batch", batch).status, 200);
    accepted += 2 * ChangeReader::kMaxPerSecond;
    advance(1s);
  }
  EXPECT_EQ(events_->streams(), 0u);
  EXPECT_EQ(engine_stats().counters.scheduled, accepted);
}

TEST_F(RoutesWatch, TheHistoryTellsWhatHappenedInEachStep) {
  await_rest();
  schedule(R"({"queue":"q"})");
  schedule(R"({"queue":"q","delay":"1h"})");
  advance(10s);
  advance(10s);
  const std::string history = send("GET", "/v1/stats/history?span=30s").body;
  EXPECT_EQ(member(history, "step_ms"), "10000");
  const std::size_t second_at = history.rfind("{\"at\":");
  const std::string first = history.substr(0, second_at);
  const std::string second = history.substr(second_at);
  EXPECT_EQ(member(first, "at"), "2020-01-01T00:00:10.000Z");
  EXPECT_EQ(member(first, "accepted"), "2");
  EXPECT_EQ(member(first, "fired"), "1");
  EXPECT_EQ(member(first, "ready", "tasks"), "1");
  EXPECT_TRUE(has_latency(first));
  EXPECT_EQ(member(second, "at"), "2020-01-01T00:00:20.000Z");
  EXPECT_EQ(member(second, "accepted"), "0");
  EXPECT_FALSE(has_latency(second));
}

TEST_F(RoutesWatch, TheHistoryOfAQueueHasItsEventsAndItsLateness) {
  await_rest();
  schedule(R"({"queue":"q"})");
  schedule(R"({"queue":"other"})");
  advance(3s);
  lease("q");
  advance(7s);
  advance(10s);
  const HttpResponse answer = send("GET", "/v1/stats/history?queue=q&span=30s");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const QueueHistory history = json::parse_queue_history(answer.body).value();
  EXPECT_EQ(history.queue, "q");
  EXPECT_EQ(history.step, 10s);
  ASSERT_EQ(history.points.size(), 2u) << answer.body;
  EXPECT_EQ(history.points[0].accepted, 1u);
  EXPECT_EQ(history.points[0].leased, 1u);
  EXPECT_EQ(history.points[0].lateness, (HandOutLateness{.mean = 3s, .max = 3s}));
  EXPECT_EQ(history.points[1].accepted, 0u);
  EXPECT_FALSE(history.points[1].lateness);
  EXPECT_EQ(send("GET", "/v1/stats/history?queue=unknown").status, 404);
}

TEST_F(RoutesWatch, StatsMayLeaveQueuesOut) {
  schedule(R"({"queue":"a"})");
  schedule(R"({"queue":"b"})");
  schedule(R"({"queue":"b","delay":"1h"})");
  const auto stats = [this](const std::string& query) {
    return json::parse_stats(send("GET", "/v1/stats" + query).body).value();
  };
  EXPECT_EQ(stats("").queues.size(), 2u);
  const json::ServerStats one = stats("?queues=1");
  ASSERT_EQ(one.queues.size(), 1u);
  EXPECT_EQ(one.queues[0].queue, "b");
  EXPECT_EQ(one.queue_count, 2u);
  EXPECT_EQ(one.all, (QueueStats{.scheduled = 1, .ready = 2}));
  EXPECT_TRUE(stats("?queues=0").queues.empty());
}

TEST_F(RoutesWatch, QueuesMayBeThoseWithTheOldestReadyTasks) {
  schedule(R"({"queue":"stuck"})");
  advance(10s);
  for (int i = 0; i < 3; ++i) schedule(R"({"queue":"large"})");
  schedule(R"({"queue":"idle","delay":"1h"})");
  const json::ServerStats one =
      json::parse_stats(send("GET", "/v1/stats?queues=1&by=age").body).value();
  ASSERT_EQ(one.queues.size(), 1u);
  EXPECT_EQ(one.queues[0].queue, "stuck");
  EXPECT_EQ(one.queue_count, 3u);
  EXPECT_EQ(one.all.ready, 4u);
  const auto all = json::parse_stats(send("GET", "/v1/stats?by=age").body).value();
  ASSERT_EQ(all.queues.size(), 2u);
  EXPECT_EQ(all.queues[1].queue, "large");
  const auto listed = json::parse_queues(send("GET", "/v1/queues?limit=1&by=age").body).value();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].stats.queue, "stuck");
  const auto named = json::parse_queues(send("GET", "/v1/queues?name=l&by=age").body).value();
  ASSERT_EQ(named.size(), 1u) << "idle has no ready task";
  EXPECT_EQ(named[0].stats.queue, "large");
  for (const char* target : {"/v1/stats?by=name", "/v1/queues?by=name"}) {
    expect_problem(send("GET", target), 400, {R"("field":"by")", "age"});
  }
}

}  // namespace
}  // namespace detent::server
