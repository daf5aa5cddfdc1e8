// Converts between the values of the installed client and of the server: every field must survive.
#include "client/client_values.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

const WallTime kDue{1'767'323'045'678ms};

TEST(ClientValues, ATaskKeepsAllItsFields) {
  const ScheduleRequest request =
      from_client(client::NewTask{.queue = "q",
                                  .payload = {client::Payload::Kind::bytes, {"\0\xff", 2}},
                                  .due = kDue,
                                  .key = "k",
                                  .priority = 1,
                                  .max_attempts = 2,
                                  .visibility_timeout = 3s,
                                  .backoff = client::Backoff{.initial = 4s, .max = 5s},
                                  .webhook = "http://a/",
                                  .headers = {{"X-A", "b"}}});
  EXPECT_EQ(request.queue, "q");
  EXPECT_EQ(request.payload, (Payload{Payload::Kind::bytes, {"\0\xff", 2}}));
  EXPECT_EQ(request.due, Due{kDue});
  EXPECT_EQ(request.key, "k");
  EXPECT_EQ(request.rules, (TaskRules{.priority = 1,
                                      .max_attempts = 2,
                                      .visibility_timeout = 3s,
                                      .backoff = Backoff{.initial = 4s, .max = 5s}}));
  EXPECT_EQ(request.webhook, "http://a/");
  EXPECT_EQ(request.headers, (TaskHeaders{{.name = "X-A", .value = "b"}}));
}

TEST(ClientValues, ANewTaskHasTheDefaultsOfTheServer) {
  EXPECT_EQ(content_hash(from_client(client::NewTask{.queue = "q"})),
            content_hash(ScheduleRequest{.queue = "q"}));
}

TEST(ClientValues, ManyTasksAreIdsOrKeysOfOneQueue) {
  using client::TaskKey;
  const std::vector<client::TaskName> ids{std::uint64_t{256}, std::uint64_t{512}};
  EXPECT_EQ(from_client(ids)->ids, (std::vector<std::optional<TaskId>>{TaskId{256}, TaskId{512}}));
  const std::vector<client::TaskName> keys{TaskKey{"q", "a"}, TaskKey{"q", "b"}};
  EXPECT_EQ(from_client(keys)->queue, "q");
  EXPECT_EQ(from_client(keys)->keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(from_client(std::vector<client::TaskName>{}));
  const std::vector<client::TaskName> mixed{std::uint64_t{256}, TaskKey{"q", "a"}};
  EXPECT_EQ(from_client(mixed).error().code, ErrorCode::invalid_argument);
  const std::vector<client::TaskName> two_queues{TaskKey{"q", "a"}, TaskKey{"r", "a"}};
  EXPECT_EQ(from_client(two_queues).error().code, ErrorCode::invalid_argument);
}

TEST(ClientValues, AChangeOfAQueueKeepsSettingsThatItDoesNotName) {
  EXPECT_EQ(from_client(client::QueueChange{}), json::QueuePatch{});
  client::QueueChange change;
  change.paused = true;
  change.max_attempts = std::optional<std::uint32_t>();
  change.backoff = client::Backoff{.initial = 1s, .max = 2s};
  change.webhook = "";
  QueueSettings settings{.max_attempts = 3, .max_tasks = 4, .webhook = QueueWebhook{"http://a/"}};
  settings = from_client(change).applied_to(settings);
  EXPECT_EQ(settings, (QueueSettings{.paused = true,
                                     .max_attempts = {},
                                     .backoff = Backoff{.initial = 1s, .max = 2s},
                                     .max_tasks = 4}));
  change.webhook = "http://b/";
  EXPECT_EQ(from_client(change).applied_to(settings).webhook, QueueWebhook{"http://b/"});
  change.webhook_keys = {"whsec_a", "whsec_b"};
  const QueueView view{.settings = from_client(change).applied_to(settings)};
  EXPECT_EQ(view.settings.webhook, (QueueWebhook{"http://b/", {"whsec_a", "whsec_b"}}));
  EXPECT_EQ(to_client(view).settings.webhook_keys, 2U);
}

TEST(ClientValues, AQueueHasAWebhookOrASink) {
  client::QueueChange change;
  change.sink = "events";
  const QueueSettings settings = from_client(change).applied_to({});
  EXPECT_EQ(settings.webhook, QueueWebhook{"sink:events"});
  change.sink = "";
  EXPECT_EQ(from_client(change).applied_to(settings), QueueSettings{});
}

TEST(ClientValues, AScheduleKeepsItsRuleAndPolicies) {
  using client::CalendarRule;
  using client::NewSchedule;
  NewSchedule wanted{.rule = CalendarRule{.every = 3,
                                          .unit = CalendarRule::Unit::week,
                                          .month_end = CalendarRule::MonthEnd::skip,
                                          .anchor = kDue},
                     .queue = "q"};
  wanted.misfire = NewSchedule::Misfire::all;
  wanted.overlap = NewSchedule::Overlap::queue_one;
  wanted.count = 7;
  const RecurringSchedule made = from_client("s", wanted);
  EXPECT_EQ(made.name, "s");
  EXPECT_EQ(std::get<detent::CalendarRule>(made.rule),
            (detent::CalendarRule{.anchor = kDue,
                                  .unit = detent::CalendarRule::Unit::week,
                                  .every = 3,
                                  .month_end = detent::CalendarRule::MonthEnd::skip}));
  EXPECT_EQ(made.misfire, Misfire::all);
  EXPECT_EQ(made.overlap, ScheduleOverlap::queue_one);
  EXPECT_EQ(made.count, 7U);
  wanted.rule = client::CronRule{"0 9 * * *"};
  EXPECT_EQ(std::get<CronRule>(from_client("s", wanted).rule).expression, "0 9 * * *");
  wanted.rule = client::IntervalRule{.every = 1h, .anchor = kDue};
  EXPECT_EQ(std::get<IntervalRule>(from_client("s", wanted).rule),
            (IntervalRule{.period = 1h, .anchor = kDue}));
}

TEST(ClientValues, EachErrorCodeHasItsClientCode) {
  using Code = ClientError::Code;
  const std::array<std::pair<ErrorCode, Code>, 9> codes{
      {{ErrorCode::invalid_argument, Code::invalid_argument},
       {ErrorCode::forbidden, Code::forbidden},
       {ErrorCode::not_found, Code::not_found},
       {ErrorCode::conflict, Code::conflict},
       {ErrorCode::too_large, Code::too_large},
       {ErrorCode::resource_exhausted, Code::resource_exhausted},
       {ErrorCode::unavailable, Code::unavailable},
       {ErrorCode::data_loss, Code::data_loss},
       {ErrorCode::internal, Code::internal}}};
  for (const auto& [code, expected] : codes) {
    const Error given{code, "words", "field"};
    const ClientError error = to_client(given);
    EXPECT_EQ(to_error(error), given);
    EXPECT_EQ(error.code, expected);
    EXPECT_EQ(error.message, "words");
    EXPECT_EQ(error.field, "field");
  }
}

TEST(ClientValues, EnumsHaveTheSameWordsOnBothSides) {
  using client::NewSchedule;
  for (const auto state : {TaskState::scheduled, TaskState::ready, TaskState::leased,
                           TaskState::dead, TaskState::completed, TaskState::cancelled}) {
    TaskSnapshot snapshot;
    snapshot.state = state;
    EXPECT_EQ(to_string(to_client(snapshot).state), to_string(state));
  }
  EXPECT_EQ(to_string(client::TaskState::dead), "dead");
  EXPECT_EQ(to_string(client::TaskState::cancelled), "cancelled");
  EXPECT_EQ(to_string(client::CalendarRule::Unit::day), "day");
  EXPECT_EQ(to_string(client::CalendarRule::Unit::week), "week");
  EXPECT_EQ(to_string(client::CalendarRule::Unit::month), "month");
  EXPECT_EQ(to_string(client::CalendarRule::Unit::year), "year");
  EXPECT_EQ(to_string(client::CalendarRule::MonthEnd::clamp), "clamp");
  EXPECT_EQ(to_string(client::CalendarRule::MonthEnd::skip), "skip");
  EXPECT_EQ(to_string(NewSchedule::Gap::skip), "skip");
  EXPECT_EQ(to_string(NewSchedule::Gap::run_after), "run_after");
  EXPECT_EQ(to_string(NewSchedule::Repeat::first), "first");
  EXPECT_EQ(to_string(NewSchedule::Repeat::second), "second");
  EXPECT_EQ(to_string(NewSchedule::Repeat::both), "both");
  EXPECT_EQ(to_string(NewSchedule::Misfire::skip), "skip");
  EXPECT_EQ(to_string(NewSchedule::Misfire::once), "once");
  EXPECT_EQ(to_string(NewSchedule::Misfire::all), "all");
  EXPECT_EQ(to_string(NewSchedule::Overlap::allow), "allow");
  EXPECT_EQ(to_string(NewSchedule::Overlap::skip), "skip");
  EXPECT_EQ(to_string(NewSchedule::Overlap::queue_one), "queue_one");
  for (const auto outcome : {LeaseOutcome::done, LeaseOutcome::dead, LeaseOutcome::conflict}) {
    EXPECT_EQ(to_string(to_client(outcome)), to_string(outcome));
  }
}

TEST(ClientValues, AScheduleComesBackAsItWasPut) {
  client::NewSchedule wanted{.rule = client::IntervalRule{.every = 1h, .anchor = kDue},
                             .time_zone = "Asia/Shanghai",
                             .queue = "q",
                             .payload = {client::Payload::Kind::bytes, "b"},
                             .priority = 1,
                             .max_attempts = 2,
                             .visibility_timeout = 3s,
                             .backoff = client::Backoff{.initial = 4s, .max = 5s},
                             .count = 6,
                             .start = kDue,
                             .end = kDue + 1h,
                             .jitter = 7s,
                             .misfire = client::NewSchedule::Misfire::all,
                             .misfire_grace = 8s,
                             .misfire_limit = 9,
                             .overlap = client::NewSchedule::Overlap::skip,
                             .gap = client::NewSchedule::Gap::run_after,
                             .repeat = client::NewSchedule::Repeat::both};
  const ScheduleView view{.record = {.schedule = from_client("s", wanted),
                                     .progress = {.made = 1,
                                                  .overlapped = 2,
                                                  .last_at = kDue,
                                                  .last_task = TaskId{512},
                                                  .queued_at = kDue + 1ms}},
                          .next_at = kDue + 1h,
                          .words = "Every hour",
                          .broken = "no zone"};
  client::Schedule schedule = to_client(view);
  EXPECT_EQ(schedule.definition, wanted);
  EXPECT_EQ(schedule.name, "s");
  EXPECT_EQ(schedule.state, "broken");
  EXPECT_EQ(schedule.words, "Every hour");
  EXPECT_EQ(schedule.broken, "no zone");
  EXPECT_EQ(schedule.queue, "q");
  EXPECT_EQ(schedule.next_at, kDue + 1h);
  EXPECT_EQ(schedule.last_at, kDue);
  EXPECT_EQ(schedule.queued_at, kDue + 1ms);
  EXPECT_EQ(schedule.made, 1U);
  EXPECT_EQ(schedule.overlapped, 2U);
  EXPECT_EQ(schedule.last_task, 512U);
  for (const auto& rule :
       {decltype(wanted.rule)(client::CronRule{"0 9 * * *"}),
        decltype(wanted.rule)(client::CalendarRule{.every = 3, .anchor = kDue})}) {
    wanted.rule = rule;
    const ScheduleView other{.record = {.schedule = from_client("s", wanted)}};
    EXPECT_EQ(to_client(other).definition.rule, rule);
  }
}

TEST(ClientValues, ATaskIsReadWithItsRules) {
  TaskSnapshot snapshot;
  snapshot.task.rules = {.priority = 1,
                         .max_attempts = 2,
                         .visibility_timeout = 3s,
                         .backoff = Backoff{.initial = 4s, .max = 5s}};
  snapshot.task.webhook = "http://a/";
  snapshot.task.headers = {{"X-A", "b"}};
  const client::Task task = to_client(snapshot);
  EXPECT_EQ(task.max_attempts, 2U);
  EXPECT_EQ(task.visibility_timeout, 3s);
  EXPECT_EQ(task.backoff, (client::Backoff{.initial = 4s, .max = 5s}));
  EXPECT_EQ(task.webhook, "http://a/");
  EXPECT_EQ(task.headers, (std::vector<client::Header>{{"X-A", "b"}}));
}

}  // namespace
}  // namespace detent
