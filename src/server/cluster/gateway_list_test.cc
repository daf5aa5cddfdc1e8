// A cluster of three shards answers like a single server. Both get the same requests, and each pair
// of answers is compared. Only the order in lists may differ: of dead and ended tasks of different
// queues, and of live tasks with the same due time. No order is promised for them.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "protocol/json/answer_codec.h"
#include "protocol/json/json_fields.h"
#include "server/testing/gateway_fixture.h"

namespace detent::server {
namespace {

using Lines = std::vector<std::string>;

std::string join(const Lines& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string object(const Lines& members) { return "{" + join(members, ",") + "}"; }

std::string member(const std::string& name, const std::string& value) {
  return quoted(name) + ":" + value;
}

/// All pages of a list.
struct Walked {
  std::vector<TaskSnapshot> tasks;
  Lines texts;                     // in the test's names
  std::vector<std::size_t> pages;  // the number of tasks of each page, except an empty last page
};

/// The due times of the live tasks, in the order of the list.
std::vector<WallTime> due_times(const Walked& list) {
  std::vector<WallTime> times;
  for (const TaskSnapshot& view : list.tasks) {
    if (view.task.standing == Standing::live) times.push_back(view.task.due_at);
  }
  return times;
}

bool is_in_order(const Walked& list) {
  const auto part = [](const TaskSnapshot& view) {
    return view.task.standing == Standing::dead ? 0 : view.task.standing == Standing::live ? 1 : 2;
  };
  return std::ranges::is_sorted(list.tasks, {}, [&](const TaskSnapshot& view) {
    const bool is_live = part(view) == 1;
    return std::tuple(part(view), is_live ? view.task.due_at : WallTime{},
                      is_live ? view.task.id : TaskId{});
  });
}

class GatewayLists : public GatewayRoutesTest {
 protected:
  template <class Ask>
  static Walked walk(const std::string& filter, std::size_t limit, Names& names, Ask ask) {
    Walked list;
    std::string cursor;
    do {
      std::string target = "/v1/tasks?" + filter + "limit=" + std::to_string(limit);
      if (!cursor.empty()) target += "&cursor=" + cursor;
      const net::HttpResponse answer =
          ask(net::HttpRequest{.method = "GET", .target = target, .headers = {}, .body = ""});
      const Result<json::TaskListAnswer> page = json::parse_task_list(answer.body);
      if (!page) {
        ADD_FAILURE() << target << " " << answer.body;
        return list;
      }
      json::JsonDocument document;
      for (const json::JsonValue& task : *json::take_list(document, answer.body, "tasks").value()) {
        list.texts.push_back(names.to_test(task.text));
      }
      list.tasks.insert(list.tasks.end(), page->tasks.begin(), page->tasks.end());
      list.pages.push_back(page->tasks.size());
      cursor = page->cursor;
    } while (!cursor.empty() && list.pages.size() < 1'000);
    if (list.pages.back() == 0) list.pages.pop_back();
    return list;
  }
  Walked walk_cluster(const std::string& filter, std::size_t limit) {
    return walk(filter, limit, cluster_names_,
                [this](const net::HttpRequest& request) { return ask_cluster(request); });
  }
  /// The list over all its pages meets each task once, in order, and the same tasks on both sides.
  void expect_same_list(const std::string& filter, std::size_t limit) {
    SCOPED_TRACE(filter + " in pages of " + std::to_string(limit));
    Walked one = walk(filter, limit, one_names_,
                      [this](const net::HttpRequest& request) { return one_.send(request); });
    Walked cluster = walk_cluster(filter, limit);
    EXPECT_EQ(due_times(one), due_times(cluster));
    EXPECT_EQ(one.pages, cluster.pages);
    EXPECT_TRUE(is_in_order(cluster));
    std::ranges::sort(one.texts);
    std::ranges::sort(cluster.texts);
    EXPECT_EQ(one.texts, cluster.texts);
    EXPECT_EQ(std::ranges::adjacent_find(cluster.texts), cluster.texts.end());
  }
};

/// Sends random requests.
class GatewayRandom : public GatewayLists {
 protected:
  std::uint32_t below(std::uint32_t bound) { return rng_.below(bound); }
  const std::string& any_queue() {
    return queues_[below(static_cast<std::uint32_t>(queues_.size()))];
  }
  std::string any_key() { return "k" + std::to_string(below(8)); }
  /// The id of a task that exists or existed, or an id without a task.
  std::string any_id() {
    if (one_names_.tasks() == 0 || below(20) == 0) return below(2) == 0 ? "999936" : "none";
    return "@" + std::to_string(below(static_cast<std::uint32_t>(one_names_.tasks())));
  }
  std::string any_lease() {
    if (one_names_.leases() == 0 || below(20) == 0) return "none";
    // It is usually one of the latest tasks.
    const auto count = static_cast<std::uint32_t>(one_names_.leases());
    return "#" + std::to_string(count - 1 - below(std::min<std::uint32_t>(count, 12)));
  }
  template <class Any>
  std::string some(Any any) {
    Lines texts;
    for (std::uint32_t i = below(6); i > 0; --i) texts.push_back(quoted(any()));
    return "[" + join(texts, ",") + "]";
  }
  std::string any_task() {
    if (below(25) == 0) return R"({"queue":"bad name"})";
    if (below(25) == 0) return R"({"payload":1})";
    if (below(25) == 0) return R"([7])";
    Lines members{member("queue", quoted(any_queue()))};
    members.push_back(member("payload", R"({ "n" : [1.0,)" + std::to_string(++made_) + "] }"));
    members.push_back(member("delay_ms", std::to_string(below(3) * below(5'000))));
    if (below(2) == 0) members.push_back(member("key", quoted(any_key())));
    if (below(3) == 0) members.push_back(member("priority", std::to_string(below(3))));
    if (below(3) == 0) members.push_back(member("max_attempts", "1"));
    if (below(40) == 0) members.push_back(member("dely", "1"));
    return object(members);
  }

  void schedule_one() { same("POST", "/v1/tasks", any_task()); }
  void schedule_many() {
    Lines tasks;
    for (std::uint32_t i = below(12); i > 0; --i) tasks.push_back(any_task());
    if (below(2) == 0) {
      same("POST", "/v1/tasks/batch", join(tasks, "\n"),
           {{"content-type", "application/x-ndjson; charset=utf-8"}});
    } else {
      same("POST", "/v1/tasks/batch", "[ " + join(tasks, " ,\n") + "]");
    }
  }
  /// The leases are so long that none expires, because the backoff after it has a random part.
  void lease() {
    same("POST", "/v1/queues/" + any_queue() + "/lease",
         R"({"visibility_timeout":"30d","max":)" + std::to_string(1 + below(4)) + "}");
  }
  void end_leases() {
    static constexpr std::array<std::pair<const char*, const char*>, 4> kVerbs{
        {{"complete", ""},
         {"fail", R"(,"delay":"1s","error":"no")"},
         {"extend", R"(,"by":"29d")"},
         {"release", R"(,"delay_ms":2000)"}}};
    const auto& [verb, more] = kVerbs.at(below(4));
    same("POST", std::string("/v1/leases/") + verb,
         R"({"leases":)" + some([this] { return any_lease(); }) + more + "}");
  }
  void cancel_or_move() {
    Lines members;
    if (below(3) == 0) {
      members.push_back(member("queue", quoted(any_queue())));
      members.push_back(member("keys", some([this] { return any_key(); })));
    } else {
      members.push_back(member("ids", some([this] { return any_id(); })));
    }
    const bool is_move = below(2) == 0;
    if (is_move) members.push_back(member("delay_ms", std::to_string(below(9'000))));
    if (below(30) == 0) members.push_back(member("unknown", "1"));
    same("POST", is_move ? "/v1/tasks/move" : "/v1/tasks/cancel", object(members));
  }
  void one_task() {
    const std::string path = below(2) == 0 ? "/v1/tasks/" + any_id()
                                           : "/v1/queues/" + any_queue() + "/keys/" + any_key();
    switch (below(4)) {
      case 0:
        same("GET", path);
        break;
      case 1:
        same("PATCH", path, R"({"priority":5,"delay":"3s"})");
        break;
      case 2:
        same("DELETE", path);
        break;
      default:
        same("POST", path + "/run");
    }
  }
  void queue_verb() {
    const std::string path = "/v1/queues/" + any_queue();
    static constexpr std::array kVerbs{"pause", "resume", "redrive"};
    switch (below(5)) {
      case 0:
        same("PATCH", path, R"({"retention":"1h"})");
        break;
      case 1:
        same("GET", path);
        break;
      case 2:
        if (below(5) == 0) same("POST", path + "/purge");
        break;
      default:
        same("POST", path + "/" + kVerbs.at(below(3)));
    }
  }
  void look() {
    same("GET", "/v1/queues");
    same("GET", "/v1/stats");
    same("GET", "/v1/stats?queues=0");
    same("GET", "/v1/forecast?bins=5&span=10m");
  }
  void step() {
    switch (below(10)) {
      case 0:
      case 1:
        return schedule_one();
      case 2:
        return schedule_many();
      case 3:
      case 4:
        return lease();
      case 5:
        return end_leases();
      case 6:
        return cancel_or_move();
      case 7:
        return one_task();
      case 8:
        return queue_verb();
      default:
        return advance(std::chrono::milliseconds{below(3'000)});
    }
  }

  const std::uint64_t seed_ = test_seed();
  Rng rng_{seed_};
  const std::vector<std::string> queues_ = queues(2);
  int made_ = 0;
};

TEST_F(GatewayRandom, ThreeShardsAnswerAsOneServerDoes) {
  SCOPED_TRACE(replay_hint(seed_));
  for (int round = 0; round < 12 && !HasFailure(); ++round) {
    for (int i = 0; i < 60 && !HasFailure(); ++i) step();
    look();
    expect_same_list("", 1 + below(10));
    expect_same_list("state=dead&", 1 + below(3));
    expect_same_list("state=scheduled&", 1 + below(5));
    expect_same_list("key=" + any_key() + "&", 1 + below(3));
    expect_same_list("queue=" + any_queue() + "&", 1 + below(5));
  }
}

TEST_F(GatewayLists, APageEndsAnywhereInAListOfAllParts) {
  const std::vector<std::string> names = queues(2);
  for (const std::string& queue : names) {
    same("PATCH", "/v1/queues/" + queue, R"({"retention":"1h"})");
    for (int i = 0; i < 9; ++i) {
      same("POST", "/v1/tasks",
           R"({"queue":")" + queue + R"(","max_attempts":1,"delay":")" + std::to_string(i % 3) +
               R"(s"})");
    }
    same("POST", "/v1/queues/" + queue + "/lease", R"({"max":3})");
  }
  for (int i = 0; i < 18; ++i) {
    const std::string body = R"({"leases":["#)" + std::to_string(i) + R"("]})";
    if (i % 3 != 2) same("POST", i % 3 == 0 ? "/v1/leases/fail" : "/v1/leases/complete", body);
    advance(7ms);
  }
  for (std::size_t limit = 1; limit <= 55; ++limit) expect_same_list("", limit);
  for (const char* state : {"dead", "leased", "ready", "scheduled", "completed"}) {
    for (const std::size_t limit : {1U, 2U, 3U, 7U}) {
      expect_same_list("state=" + std::string(state) + "&", limit);
    }
  }
  expect_same_list("due_after=2020-01-01T00:00:01Z&due_before=2020-01-01T00:00:02Z&", 2);
}

TEST_F(GatewayLists, AnUnchangedTaskIsListedOnceWhileOthersChange) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  const std::vector<std::string> names = queues(1);
  for (const std::string& queue : names) {
    same("PATCH", "/v1/queues/" + queue, R"({"retention":"1h"})");
    for (int i = 0; i < 20; ++i) {
      same("POST", "/v1/tasks", R"({"queue":")" + queue + R"(","max_attempts":1})");
    }
    same("POST", "/v1/queues/" + queue + "/lease", R"({"max":12})");
  }
  // Each queue has six dead, six completed and eight live tasks. The tasks in the lower half stay.
  for (int i = 0; i < 36; ++i) {
    same("POST", i % 2 == 0 ? "/v1/leases/fail" : "/v1/leases/complete",
         R"({"leases":["#)" + std::to_string(i) + R"("]})");
  }
  std::map<std::string, int> met;
  std::string cursor;
  int pages = 0;
  do {
    const net::HttpResponse answer =
        ask_cluster({.method = "GET",
                     .target = "/v1/tasks?limit=3" + (cursor.empty() ? "" : "&cursor=" + cursor),
                     .headers = {},
                     .body = ""});
    const json::TaskListAnswer page = json::parse_task_list(answer.body).value();
    for (const TaskSnapshot& view : page.tasks) ++met[to_string(view.task.id)];
    cursor = page.cursor;
    const std::string other = "@" + std::to_string(2 * rng.below(30) + 1);
    same("POST", "/v1/tasks/" + other + "/run");
    same("DELETE", "/v1/tasks/" + other);
    same("POST", "/v1/tasks", R"({"queue":")" + names.at(rng.below(3)) + R"("})");
    ASSERT_LT(++pages, 1'000);
  } while (!cursor.empty());
  for (int i = 0; i < 60; i += 2) {
    const std::string id = cluster_names_.to_side("@" + std::to_string(i));
    EXPECT_EQ(met[id], 1) << id;
  }
}

}  // namespace
}  // namespace detent::server
