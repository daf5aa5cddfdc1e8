// Checks the exact text of the server's answers, and that clients read equal values from it.
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "protocol/json/answer_codec.h"
#include "protocol/json/json_reader.h"
#include "protocol/json/problem.h"
#include "protocol/json/stats_codec.h"
#include "task/retry.h"

namespace detent::json {
namespace {

using std::chrono::milliseconds;

TaskSnapshot example_view() {
  TaskSnapshot view;
  view.state = TaskState::scheduled;
  view.task.id = TaskId{256};
  view.task.queue = "mail";
  view.task.payload = {Payload::Kind::json, "{ \"n\" : 1.0 }"};
  view.task.rules = {.priority = 5,
                     .max_attempts = 3,
                     .visibility_timeout = milliseconds{30'000},
                     .backoff = Backoff{milliseconds{10}, milliseconds{20}}};
  view.task.due_at = WallTime{milliseconds{1'767'323'045'678}};
  view.task.created_at = WallTime{milliseconds{1'767'323'000'000}};
  view.task.attempts = 1;
  add_attempt(view.task, {.error = "said \"no\""});
  return view;
}

LeasedTask example_lease() {
  LeasedTask leased;
  leased.task = example_view().task;
  leased.lease = LeaseToken{3, 9};
  leased.attempt = 2;
  leased.lease_until = WallTime{milliseconds{1'767'323'105'680}};
  leased.lateness = milliseconds{2};
  return leased;
}

TEST(RenderAnswer, AnAcceptedTaskShowsOnlyIdQueueStateAndDueTime) {
  EXPECT_EQ(
      render_accepted(example_view()),
      R"({"id":"256","queue":"mail","state":"scheduled","due_at":"2026-01-02T03:04:05.678Z"})");
}

TEST(RenderAnswer, ATaskShowsAllWithItsPayloadVerbatim) {
  EXPECT_EQ(render_task(example_view()),
            R"({"id":"256","queue":"mail","state":"scheduled","due_at":"2026-01-02T03:04:05.678Z",)"
            R"("created_at":"2026-01-02T03:03:20.000Z","priority":5,"max_attempts":3,)"
            R"("visibility_timeout_ms":30000,"backoff":{"initial_ms":10,"max_ms":20},"attempts":1,)"
            R"("last_error":"said \"no\"",)"
            R"("history":[{"started_at":"1970-01-01T00:00:00.000Z",)"
            R"("ended_at":"1970-01-01T00:00:00.000Z","error":"said \"no\""}],)"
            R"("payload":{ "n" : 1.0 }})");
}

TEST(RenderAnswer, ATaskShowsTheLatenessOfEndedAndRunningAttempts) {
  TaskSnapshot view = example_view();
  view.task.history[0].late = {milliseconds{1}, milliseconds{2'000}, milliseconds{0},
                               milliseconds{4}};
  view.state = TaskState::leased;
  view.holder =
      LeaseHolder{.late = {milliseconds{0}, milliseconds{0}, milliseconds{3'000}, milliseconds{0}}};
  const std::string body = render_task(view);
  EXPECT_NE(
      body.find(R"("late_ms":{"before_start":1,"engine":2000,"limit":0,"worker":4}}],"leased_at")"),
      std::string::npos)
      << body;
  EXPECT_NE(body.find(R"(00Z","late_ms":{"before_start":0,"engine":0,"limit":3000,"worker":0},)"),
            std::string::npos)
      << body;
}

TEST(RenderAnswer, ATaskShowsItsAttemptsOldestFirstAndAListOnlyTheLastError) {
  TaskSnapshot view = example_view();
  add_attempt(view.task, {.started_at = WallTime{milliseconds{1'000}},
                          .ended_at = WallTime{milliseconds{2'500}},
                          .worker = "w",
                          .error = "later"});
  const std::string body = render_task(view);
  EXPECT_NE(body.find(R"("error":"said \"no\""},{"started_at":"1970-01-01T00:00:01.000Z",)"
                      R"("ended_at":"1970-01-01T00:00:02.500Z","worker":"w","error":"later"}])"),
            std::string::npos)
      << body;
  const std::string list = render_task_list(std::span(&view, 1), "");
  EXPECT_NE(list.find(R"("attempts":1,"last_error":"later","payload")"), std::string::npos) << list;
  EXPECT_EQ(list.find("said"), std::string::npos) << list;
}

TEST(RenderAnswer, ALeasedTaskShowsItsHolder) {
  TaskSnapshot view = example_view();
  view.holder = LeaseHolder{.since = WallTime{milliseconds{1'000}}, .worker = "w-1"};
  EXPECT_NE(render_task(view).find(
                R"(],"leased_at":"1970-01-01T00:00:01.000Z","worker":"w-1","payload")"),
            std::string::npos)
      << render_task(view);
}

TEST(RenderAnswer, AKeyFollowsTheQueue) {
  TaskSnapshot view = example_view();
  view.task.key = "order \"7\"";
  LeasedTask leased = example_lease();
  leased.task.key = view.task.key;
  constexpr const char* kShown = R"("queue":"mail","key":"order \"7\"",)";
  EXPECT_NE(render_task(view).find(kShown), std::string::npos);
  EXPECT_NE(render_leased_tasks(std::span(&leased, 1)).find(kShown), std::string::npos);
}

TEST(RenderAnswer, WebhookAndHeadersAreShownAndReadBack) {
  TaskSnapshot view = example_view();
  view.task.webhook = "https://a/b";
  view.task.headers = {{"X-A", "\"1\""}, {"b", ""}};
  const std::string body = render_task(view);
  EXPECT_NE(body.find(R"("webhook":"https://a/b","headers":{"X-A":"\"1\"","b":""},"payload")"),
            std::string::npos)
      << body;
  EXPECT_EQ(parse_task(body)->task, view.task);
  LeasedTask leased = example_lease();
  leased.task.headers = view.task.headers;
  const std::string lease = render_leased_tasks(std::span(&leased, 1));
  EXPECT_NE(lease.find(R"("queue":"mail","headers":{"X-A":"\"1\"","b":""},)"), std::string::npos);
  EXPECT_EQ(parse_leased_tasks(lease)->front().headers, view.task.headers);
}

TEST(RenderAnswer, LeasedTasksShowTheirLeases) {
  const std::array<LeasedTask, 1> leased{example_lease()};
  EXPECT_EQ(render_leased_tasks(leased),
            R"({"tasks":[{"id":"256","lease":")" + to_string(LeaseToken{3, 9}) +
                R"(","attempt":2,"queue":"mail","payload":{ "n" : 1.0 },"priority":5,)"
                R"("due_at":"2026-01-02T03:04:05.678Z","lease_until":"2026-01-02T03:05:05.680Z",)"
                R"("lateness_ms":2}]})");
  EXPECT_EQ(render_leased_tasks({}), R"({"tasks":[]})");
}

TEST(RenderAnswer, EachLeaseResultIsAStatus) {
  const std::array<Result<LeaseOutcome>, 3> results{LeaseOutcome::done, LeaseOutcome::conflict,
                                                    LeaseOutcome::dead};
  EXPECT_EQ(render_lease_results(results),
            R"({"results":[{"status":"done"},{"status":"conflict"},{"status":"dead"}]})");
}

TEST(RenderAnswer, ALeaseThatFailedHasAStatusThatSaysWhetherToRepeat) {
  const auto status_of = [](ErrorCode code) {
    const std::array<Result<LeaseOutcome>, 1> results{Error{code, "no", ""}};
    const std::string body = render_lease_results(results);
    EXPECT_NE(body.find(R"(,"error":{"type":"urn:detent:error:)"), std::string::npos) << body;
    return body.substr(0, body.find(','));
  };
  EXPECT_EQ(status_of(ErrorCode::unavailable), R"({"results":[{"status":"unavailable")");
  EXPECT_EQ(status_of(ErrorCode::data_loss), R"({"results":[{"status":"error")");
}

TEST(AnswerRoundTrip, AnAcceptedTask) {
  const TaskSnapshot view = example_view();
  EXPECT_EQ(parse_accepted(render_accepted(view)),
            (AcceptedTask{view.task.id, "mail", TaskState::scheduled, view.task.due_at}));
}

TEST(AnswerRoundTrip, ATaskInEveryState) {
  constexpr std::pair<TaskState, Standing> kStates[] = {
      {TaskState::scheduled, Standing::live},      {TaskState::ready, Standing::live},
      {TaskState::leased, Standing::live},         {TaskState::dead, Standing::dead},
      {TaskState::completed, Standing::completed}, {TaskState::cancelled, Standing::cancelled}};
  for (const auto& [state, standing] : kStates) {
    TaskSnapshot view = example_view();
    view.state = state;
    view.task.standing = standing;
    view.task.key = "order \"7\"";
    view.task.payload = {Payload::Kind::bytes, std::string("\0\xFF", 2)};
    const auto read = parse_task(render_task(view));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->task, view.task);
    EXPECT_EQ(read->state, state);
  }
}

TEST(AnswerRoundTrip, ATaskWithoutRulesShowsTheDefaults) {
  TaskSnapshot view = example_view();
  view.task.rules = {};
  view.task.history.clear();
  const auto read = parse_task(render_task(view));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->task.rules, (TaskRules{.priority = kDefaultPriority,
                                         .max_attempts = kDefaultMaxAttempts,
                                         .visibility_timeout = kDefaultVisibilityTimeout,
                                         .backoff = Backoff{}}));
  EXPECT_TRUE(read->task.history.empty());
  EXPECT_EQ(read->task.key, "");
}

TEST(AnswerRoundTrip, BatchResultsInOrder) {
  const Error refused{ErrorCode::too_large, "a payload must be at most 65535 bytes", "payload"};
  const std::vector<Result<TaskSnapshot>> results{example_view(), refused, example_view()};
  const auto read = parse_schedule_results(render_schedule_results(results));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ((*read)[0]->id, TaskId{256});
  EXPECT_EQ((*read)[1].error(), refused);
  EXPECT_EQ((*read)[2]->queue, "mail");
}

TEST(AnswerRoundTrip, CancelResultsInOrder) {
  const Error refused{ErrorCode::not_found, "there is no task 512", "id"};
  const std::vector<Result<TaskId>> results{TaskId{256}, refused};
  const auto read = parse_cancel_results(render_cancel_results(results));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ(*(*read)[0], TaskId{256});
  EXPECT_EQ((*read)[1].error(), refused);
}

TEST(AnswerRoundTrip, LeasedTasks) {
  LeasedTask bytes = example_lease();
  bytes.task.payload = {Payload::Kind::bytes, "x"};
  bytes.task.key = "k";
  const std::array<LeasedTask, 2> leased{example_lease(), bytes};
  const auto read = parse_leased_tasks(render_leased_tasks(leased));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  const Task task = example_view().task;
  EXPECT_EQ((*read)[0],
            (LeasedTaskAnswer{task.id, to_string(LeaseToken{3, 9}), 2, "mail", "", task.payload, 5,
                              task.due_at, example_lease().lease_until, milliseconds{2}}));
  EXPECT_EQ((*read)[1].payload, bytes.task.payload);
  EXPECT_EQ((*read)[1].key, "k");
}

TEST(AnswerRoundTrip, LeaseResults) {
  const Error lost{ErrorCode::data_loss, "read task 256: bad checksum", ""};
  const std::vector<Result<LeaseOutcome>> results{LeaseOutcome::done, lost, LeaseOutcome::dead};
  const auto read = parse_lease_results(render_lease_results(results));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ((*read)[0], LeaseOutcome::done);
  EXPECT_EQ((*read)[1].error(), lost);
  EXPECT_EQ((*read)[2], LeaseOutcome::dead);
}

TEST(AnswerRoundTrip, Stats) {
  ServerStats stats{
      .version = "0.1.0",
      .uptime = milliseconds{12'345},
      .loaded = 1,
      .waiting_workers = 2,
      .schedules = 12,
      .data_free_bytes = 18,
      .counters = {3, 4, 5, 6, 7, 8, 9, 10, 11, ~std::uint64_t{0}},
      .lateness = {0, 3, ~std::uint64_t{0}},
      .late = {.tasks = {1, 2, 3, 4},
               .time = {milliseconds{5}, milliseconds{6}, milliseconds{7}, milliseconds{8}}},
      .all = {.scheduled = 13, .ready = 14, .leased = 15, .dead = 16},
      .queue_count = 17,
      .queues = {{"a", 1, 2, 3, 4, milliseconds{5}}, {"b", 0, 0, 0, 0, std::nullopt}}};
  EXPECT_EQ(parse_stats(render_stats(stats)), stats);
  stats.queues.clear();
  stats.away = 3;
  EXPECT_EQ(parse_stats(render_stats(stats)), stats);
  stats.is_away_lost = true;
  stats.data_min_free_bytes = 19;
  stats.refuses_tasks = true;
  EXPECT_EQ(parse_stats(render_stats(stats)), stats);
}

TEST(AnswerRoundTrip, StatsOfSomeQueuesHaveNoServerFigures) {
  const ServerStats stats{.version = "0.1.0",
                          .uptime = milliseconds{1},
                          .scope = StatsScope::some_queues,
                          .all = {.ready = 14},
                          .queue_count = 1,
                          .queues = {{"a", 1, 2, 3, 4, milliseconds{5}}}};
  ServerStats with_more = stats;
  with_more.loaded = 77;
  with_more.waiting_workers = 77;
  with_more.counters.scheduled = 77;
  with_more.lateness = {77};
  EXPECT_EQ(render_stats(with_more).find("77"), std::string::npos);
  EXPECT_EQ(parse_stats(render_stats(with_more)), stats);
}

TEST(ParseAnswer, FieldsOfANewerServerAreSkipped) {
  EXPECT_TRUE(parse_accepted(
      R"({"new":[1],"id":"256","queue":"q","state":"ready","due_at":"2026-01-02T03:04:05Z"})"));
  EXPECT_TRUE(parse_lease_results(R"({"took_ms":1,"results":[{"status":"done","x":{}}]})"));
}

TEST(ParseAnswer, AnUnreadableAnswerIsAnInternalError) {
  for (const char* body : {"", "<html>", "{}", "[]", R"({"results":{}})", R"({"tasks":[5]})",
                           R"({"id":"x","queue":"q","state":"ready","due_at":0})",
                           R"({"id":"9007199254740992","queue":"q","state":"ready","due_at":0})",
                           R"({"id":"256","queue":"q","state":"lost","due_at":0})",
                           R"({"results":[{"status":"maybe"}]})", R"({"results":[{}]})"}) {
    EXPECT_EQ(parse_accepted(body).error().code, ErrorCode::internal) << body;
    EXPECT_EQ(parse_schedule_results(body).error().code, ErrorCode::internal) << body;
    EXPECT_EQ(parse_task(body).error().code, ErrorCode::internal) << body;
    EXPECT_EQ(parse_leased_tasks(body).error().code, ErrorCode::internal) << body;
    EXPECT_EQ(parse_lease_results(body).error().code, ErrorCode::internal) << body;
    EXPECT_EQ(parse_stats(body).error().code, ErrorCode::internal) << body;
  }
}

TEST(RenderAnswer, AnyErrorTextOfAWorkerGivesValidJson) {
  TaskSnapshot view = example_view();
  view.task.history[0].error = std::string("cut \xE2\x82") + '\0' + "\x1B[31m\xFF";
  EXPECT_TRUE(read_json(render_task(view)));
}

TEST(Answer, AForecastIsReadBack) {
  const Forecast forecast{.from = WallTime{milliseconds{60'000}},
                          .bin = milliseconds{120'000},
                          .counts = {0, 7, ~std::uint64_t{0}},
                          .overdue = 1,
                          .later = 2,
                          .coarse = 3};
  EXPECT_EQ(render_forecast(forecast),
            R"({"from":"1970-01-01T00:01:00.000Z","bin_ms":120000,)"
            R"("counts":[0,7,18446744073709551615],"overdue":1,"later":2,"coarse":3})");
  EXPECT_EQ(parse_forecast(render_forecast(forecast)).value(), forecast);
  for (const char* body :
       {"{}", R"({"from":0,"bin_ms":0,"counts":[],"overdue":0,"later":0,"coarse":0})",
        R"({"from":0,"bin_ms":1,"counts":["1"],"overdue":0,"later":0,"coarse":0})",
        R"({"from":0,"bin_ms":1,"overdue":0,"later":0,"coarse":0})"}) {
    EXPECT_EQ(parse_forecast(body).error().code, ErrorCode::internal) << body;
  }
}

TEST(Answer, AWheelIsReadBack) {
  const auto at = [](int count) { return WallTime{milliseconds{count}}; };
  const std::vector<WheelView::Slot> slots{
      {.level = 0, .index = 7, .from = at(7), .until = at(8), .count = 1},
      {.level = 2, .index = 1, .from = at(65'536), .until = at(131'072), .count = 9}};
  const WheelView wheel{
      .now = at(5), .level_count = 4, .slots_per_level = 256, .timers = 10, .slots = slots};
  const std::string body = render_wheel(wheel);
  const Result<WheelView> read = parse_wheel(body);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->level_count, 4U);
  EXPECT_EQ(read->slots.size(), 2U);
  EXPECT_EQ(render_wheel(*read), body);
  for (const char* wrong :
       {"{}", R"({"now":0,"tick_ms":0,"slots_per_level":256,"timers":0,"levels":[]})",
        R"({"now":0,"tick_ms":1,"slots_per_level":256,"timers":0})",
        R"({"now":0,"tick_ms":1,"slots_per_level":256,"timers":0,"levels":[{"slots":[{}]}]})"}) {
    EXPECT_EQ(parse_wheel(wrong).error().code, ErrorCode::internal) << wrong;
  }
}

}  // namespace
}  // namespace detent::json
