// The requests to the other server and the errors, with a scripted HTTP client.
// tests/durability/remote_detent_test.cc uses a real server.
#include "external/remote_detent_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/scripted_http.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

constexpr WallTime kDue{1'800'000'000'000ms};

Task task_of(std::uint64_t id) {
  return {.id = TaskId{id}, .queue = "q", .payload = {}, .rules = {}, .due_at = kDue};
}

class RemoteDetent : public testing::Test {
 protected:
  RemoteDetent() {
    script_.respond = [this](const net::HttpRequest& request) { return respond(request); };
  }
  /// Answers the set-up of the queue and the check of its owner with success. Answers other
  /// requests with `batch_` or `one_`.
  Result<net::HttpResponse> respond(const net::HttpRequest& request) {
    if (request.method == "PATCH") {
      return net::HttpResponse{
          .status = 200,
          .body = R"({"queue":"far","scheduled":0,"ready":0,"leased":0,"dead":0,)"
                  R"("oldest_ready_age_ms":null,"bytes":0,"settings":{"paused":false,)"
                  R"("max_attempts":null,"visibility_timeout_ms":null,"backoff":null,)"
                  R"("retention_ms":0,"key_retention_ms":0,"max_tasks":null,"max_bytes":null,)"
                  R"("rate":null,"concurrency":null}})"};
    }
    if (request.target == "/v1/tasks" && request.body.find("far.folder") != std::string::npos) {
      return net::HttpResponse{.status = 200, .body = accepted_task(true)};
    }
    if (request.method == "GET") return net::HttpResponse{.status = 404};
    return request.target == "/v1/tasks/batch" ? batch_ : one_;
  }
  static std::string accepted_task(bool was_there) {
    return std::string(R"({"id":"256","queue":"far","state":"scheduled",)") +
           R"("due_at":"2027-01-01T00:00:00.000Z")" + (was_there ? R"(,"was_there":true})" : "}");
  }
  static net::HttpResponse results(std::size_t count, const std::string& each) {
    std::string body = R"({"results":[)";
    for (std::size_t i = 0; i < count; ++i) body += (i == 0 ? "" : ",") + each;
    return {.status = 200, .body = body + "]}"};
  }
  static net::HttpResponse accepted(std::size_t count) {
    return results(count, accepted_task(false));
  }
  /// The number of tasks in the body of a batch.
  static std::size_t tasks_in(const std::string& body) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = body.find("\"key\":", at)) != std::string::npos; ++at) ++count;
    return count;
  }
  std::size_t asked(const std::string& method, const std::string& target) const {
    const auto is_that = [&](const net::HttpRequest& request) {
      return request.method == method && request.target == target;
    };
    return static_cast<std::size_t>(std::ranges::count_if(script_.asked, is_that));
  }

  test::Script script_;
  net::HttpResponse batch_;
  net::HttpResponse one_;
  RemoteDetentScheduler remote_{
      test::scripted_client(script_),
      {.url = "http://far:1", .queue = "far", .folder = "folder-1", .lead = 10min}};
};

TEST_F(RemoteDetent, ATaskIsPutWithItsIdAsKeyItsLeadAndEnoughAttempts) {
  batch_ = accepted(1);
  const Task task = task_of(513);
  ASSERT_TRUE(remote_.put(std::span(&task, 1)));
  for (const char* queue : {"/v1/queues/far", "/v1/queues/far.folder"}) {
    EXPECT_EQ(asked("PATCH", queue), 1U);
  }
  EXPECT_NE(script_.asked.front().body.find("key_retention"), std::string::npos);
  const std::string& body = script_.asked.back().body;
  EXPECT_EQ(tasks_in(body), 1U);
  for (const char* part :
       {R"("queue":"far")", R"("key":"513")", R"("due_at":"2027-01-15T07:50:00.000Z")",
        R"("max_attempts":1000000)", R"("backoff":{"initial_ms":1000,"max_ms":1000})"}) {
    EXPECT_NE(body.find(part), std::string::npos) << part << " in " << body;
  }
}

TEST_F(RemoteDetent, TheQueueIsSetUpOnceAndAgainAfterAFailure) {
  const Task task = task_of(1);
  batch_ = accepted(1);
  ASSERT_TRUE(remote_.put(std::span(&task, 1)));
  ASSERT_TRUE(remote_.put(std::span(&task, 1)));
  EXPECT_EQ(asked("PATCH", "/v1/queues/far"), 1U);
  batch_ = {.status = 503};
  EXPECT_EQ(remote_.put(std::span(&task, 1)).error().code, ErrorCode::unavailable);
  batch_ = accepted(1);
  ASSERT_TRUE(remote_.put(std::span(&task, 1)));
  EXPECT_EQ(asked("PATCH", "/v1/queues/far"), 2U);
}

TEST_F(RemoteDetent, AStampFailsIfThePreviousOneIsGone) {
  script_.respond = [&](const net::HttpRequest& request) -> Result<net::HttpResponse> {
    const bool is_generation = request.target.find("/keys/") != std::string::npos;
    if (!is_generation) return respond(request);
    if (request.method != "GET") return net::HttpResponse{.status = 404};  // lost since the GET
    return net::HttpResponse{
        .status = 200,
        .body = R"({"id":"256","queue":"far.folder","state":"scheduled","priority":1,)"
                R"("due_at":"2027-01-01T00:00:00Z","created_at":"2026-01-01T00:00:00Z",)"
                R"("max_attempts":1,"visibility_timeout_ms":1,"attempts":0,"payload":5,)"
                R"("backoff":{"initial_ms":1,"max_ms":1}})"};
  };
  one_ = {.status = 201, .body = accepted_task(false)};
  ASSERT_EQ(remote_.generation().value(), 5U);
  const std::size_t scheduled = asked("POST", "/v1/tasks");
  const Result<void> stamped = remote_.stamp(5, 6);
  ASSERT_FALSE(stamped);
  EXPECT_EQ(stamped.error().code, ErrorCode::unavailable);
  EXPECT_EQ(asked("POST", "/v1/tasks"), scheduled);
}

TEST_F(RemoteDetent, ManyOrLargeTasksAreSentInParts) {
  std::vector<Task> tasks;
  for (std::uint64_t id = 1; id <= kMaxLeaseTasks + 1; ++id) tasks.push_back(task_of(id));
  std::size_t rest = tasks.size();
  script_.respond = [&](const net::HttpRequest& request) -> Result<net::HttpResponse> {
    if (request.target != "/v1/tasks/batch") return respond(request);
    const std::size_t count = tasks_in(request.body);
    rest -= count;
    return accepted(count);
  };
  ASSERT_TRUE(remote_.put(tasks));
  EXPECT_EQ(rest, 0U);
  EXPECT_EQ(asked("POST", "/v1/tasks/batch"), 2U);

  tasks.resize(100);
  for (Task& task : tasks) task.payload = {Payload::Kind::bytes, std::string(60'000, '\xff')};
  rest = tasks.size();
  ASSERT_TRUE(remote_.put(tasks));
  EXPECT_EQ(rest, 0U);
  EXPECT_EQ(asked("POST", "/v1/tasks/batch"), 4U);
  for (const net::HttpRequest& request : script_.asked) EXPECT_LT(request.body.size(), 8U << 20);
}

TEST_F(RemoteDetent, AKeyOfAnEndedTaskIsNotMistakenForATaskThatIsThere) {
  batch_ = results(1, accepted_task(true));
  one_ = {.status = 200, .body = accepted_task(true)};
  const Task task = task_of(1);
  const Result<void> put = remote_.put(std::span(&task, 1));
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(put.error().message.find("queue far must have a key retention of 0"), std::string::npos)
      << put.error().message;
}

TEST_F(RemoteDetent, ARefusalKeepsItsCodeAndMessage) {
  batch_ = results(1, R"({"error":{"type":"urn:detent:error:resource_exhausted","title":"Full",)"
                      R"("status":429,"detail":"queue far is full"}})");
  const Task task = task_of(1);
  const Result<void> put = remote_.put(std::span(&task, 1));
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(put.error().message, "put 1 tasks: queue far is full");
  batch_ = accepted(2);
  EXPECT_EQ(remote_.put(std::span(&task, 1)).error().code, ErrorCode::internal)
      << "two answers for one task";
}

TEST_F(RemoteDetent, WhileTheServerIsDownEachErrorSaysWhatToDo) {
  script_.respond = nullptr;
  script_.answer = Error{ErrorCode::unavailable, "connect to far:1: refused", ""};
  const Task task = task_of(7);
  const std::array ids{task.id};
  const auto expect_advice = [](const Error& error, const std::string& verb) {
    EXPECT_EQ(error.code, ErrorCode::unavailable);
    EXPECT_EQ(error.message, verb + ": connect to far:1: refused; start the detent server that " +
                                 "--external names; Detent tries again");
  };
  const auto set_up = [this] {
    batch_ = accepted(1);
    script_.respond = [this](const net::HttpRequest& request) { return respond(request); };
    const Task other = task_of(1);
    ASSERT_TRUE(remote_.put(std::span(&other, 1)));
    script_.respond = nullptr;
  };
  const std::vector<std::pair<std::function<Error()>, std::string>> all{
      {[&] { return remote_.put(std::span(&task, 1)).error(); }, "put 1 tasks"},
      {[&] { return remote_.take({.claim = 1s}).error(); }, "take tasks"},
      {[&] { return remote_.cancel(task.id).error(); }, "find task 7"},
      {[&] { return remote_.find(task.id).error(); }, "find task 7"},
      {[&] { return remote_.forget(ids).error(); }, "find task 7"},
      {[&] { return remote_.size().error(); }, "count tasks"}};
  for (const auto& [ask, verb] : all) {
    expect_advice(ask(), "set up queue far.folder");
    set_up();
    expect_advice(ask(), verb);
    expect_advice(ask(), "set up queue far.folder");  // another server may answer after an error
  }
}

TEST_F(RemoteDetent, ErrorsWhileReadingTheOwnerAreReported) {
  int status = 409;
  int found = 404;
  script_.respond = [&](const net::HttpRequest& request) -> Result<net::HttpResponse> {
    if (request.method == "PATCH") return respond(request);
    return net::HttpResponse{.status = request.method == "GET" ? found : status};
  };
  const std::string verb = "read the owner of queue far";
  const auto expect = [&](ErrorCode code) {
    const Error error = remote_.size().error();
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_TRUE(error.message.starts_with(verb)) << error.message;
  };
  expect(ErrorCode::unavailable);  // the owner has given up the queue between the two requests
  found = 403;
  expect(ErrorCode::forbidden);
  status = 403;
  expect(ErrorCode::forbidden);
}

TEST_F(RemoteDetent, ATaskWhoseRecordIsLargerThanAPayloadIsNotKept) {
  Task task = task_of(1);
  EXPECT_TRUE(remote_.keeps(task));
  task.payload.data.assign(kMaxPayloadBytes, '1');
  EXPECT_FALSE(remote_.keeps(task));
}

TEST(RemoteDetentOptions, ErrorsNameTheWrongOption) {
  const auto field = [](const RemoteDetentOptions& options) {
    return RemoteDetentScheduler::create(options).error().field;
  };
  EXPECT_EQ(field({.url = "http://h:1", .queue = "-"}), "queue");
  EXPECT_EQ(field({.url = "http://h:1", .queue = std::string(193, 'q')}), "queue")
      << "the name of the queue of damaged records would be too long";
  EXPECT_EQ(field({.url = "http://h:1"}), "folder");
  EXPECT_EQ(field({.url = "http://h:1", .folder = "f", .lead = -1ms}), "lead");
  EXPECT_EQ(field({.url = "http://h:1", .folder = "f", .timeout = 0ms}), "timeout");
  EXPECT_EQ(RemoteDetentScheduler::create({.url = "http://", .folder = "f"}).error().code,
            ErrorCode::invalid_argument);
  EXPECT_TRUE(RemoteDetentScheduler::create({.url = "http://h:1", .folder = "f"}));
}

}  // namespace
}  // namespace detent
