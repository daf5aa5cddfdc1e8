#include "tracing/task_tracer.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tracing/testing/kept_spans.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

const std::string kSampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const std::string kUnsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
constexpr SpanId kProducer{0xb7ad6b7169203331};

class TaskTracerTest : public ::testing::Test {
 protected:
  TaskTracer tracer(double ratio = 1) {
    return {std::make_unique<KeptSpans>(list_), clock_, ratio, 1};
  }
  TaskSnapshot task(TaskHeaders headers) const {
    const WallTime now = std::chrono::floor<std::chrono::milliseconds>(clock_.wall_now());
    TaskSnapshot view;
    view.task = {.id = {256},
                 .queue = "q",
                 .due_at = now + 1s,
                 .created_at = now,
                 .headers = std::move(headers)};
    return view;
  }
  static LeasedTask leased(const TaskSnapshot& view, std::uint64_t lease = 7) {
    return {.task = view.task, .lease = {1, lease}, .attempt = 2, .lateness = 5ms};
  }

  ManualClock clock_;
  SpanList list_;
};

TEST_F(TaskTracerTest, AcceptIsAChildOfTheProducersSpan) {
  TaskTracer tracer = this->tracer();
  TaskHeaders headers{{"traceparent", kSampled}};
  const auto accept = tracer.begin_accept(headers);
  ASSERT_TRUE(accept);
  EXPECT_EQ(headers, (TaskHeaders{{"traceparent", kSampled}}));
  const WallInstant began = clock_.wall_now();
  clock_.advance(3ms);
  tracer.accepted(*accept, task(headers));
  const std::vector<Span> spans = list_.take();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].step, SpanStep::accept);
  EXPECT_EQ(spans[0].trace, parse_traceparent(kSampled)->trace);
  EXPECT_EQ(spans[0].parent, kProducer);
  EXPECT_NE(spans[0].id, kProducer);
  EXPECT_EQ(spans[0].began, began);
  EXPECT_EQ(spans[0].ended, began + 3ms);
  EXPECT_EQ(spans[0].payload_bytes, 4u);
}

TEST_F(TaskTracerTest, ATaskWithoutATraceGetsOneThatBeginsWithItsAccept) {
  TaskTracer tracer = this->tracer();
  TaskHeaders headers{{"a", "b"}};
  const auto accept = tracer.begin_accept(headers);
  ASSERT_TRUE(accept);
  ASSERT_EQ(headers.size(), 2u);
  const auto context = parse_traceparent(headers[1].value);
  ASSERT_TRUE(context && context->is_sampled);
  tracer.accepted(*accept, task(headers));
  const std::vector<Span> spans = list_.take();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].id, context->span);
  EXPECT_EQ(spans[0].parent, SpanId{});
}

TEST_F(TaskTracerTest, TheProducerDecidesWhetherItsTraceIsSampled) {
  TaskTracer all = tracer(1);
  TaskHeaders unsampled{{"traceparent", kUnsampled}};
  EXPECT_FALSE(all.begin_accept(unsampled));
  all.leased(leased(task(unsampled)));
  EXPECT_TRUE(list_.take().empty());
  TaskTracer none = tracer(0);
  TaskHeaders sampled{{"traceparent", kSampled}};
  EXPECT_TRUE(none.begin_accept(sampled));
  TaskHeaders empty;
  EXPECT_FALSE(none.begin_accept(empty));
  EXPECT_TRUE(empty.empty());
}

TEST_F(TaskTracerTest, AHeaderThatIsNoTraceStaysAndMakesNoSpan) {
  TaskTracer tracer = this->tracer();
  TaskHeaders headers{{"traceparent", "mine"}};
  EXPECT_FALSE(tracer.begin_accept(headers));
  EXPECT_EQ(headers, (TaskHeaders{{"traceparent", "mine"}}));
  tracer.leased(leased(task(headers)));
  EXPECT_TRUE(list_.take().empty());
}

TEST_F(TaskTracerTest, ATaskWithoutRoomForTheHeaderIsNotTraced) {
  TaskTracer tracer = this->tracer();
  TaskHeaders headers;
  for (std::size_t i = 0; i < kMaxHeaders; ++i) headers.push_back({"h" + std::to_string(i), "x"});
  EXPECT_FALSE(tracer.begin_accept(headers));
  EXPECT_EQ(headers.size(), kMaxHeaders);
}

TEST_F(TaskTracerTest, ATaskThatWasThereIsNotAcceptedAgain) {
  TaskTracer tracer = this->tracer();
  TaskHeaders headers{{"traceparent", kSampled}};
  TaskSnapshot view = task(headers);
  view.was_there = true;
  tracer.accepted(*tracer.begin_accept(headers), view);
  EXPECT_TRUE(list_.take().empty());
}

TEST_F(TaskTracerTest, ALeaseHasTheWaitBeforeItAndTheEndBelowIt) {
  TaskTracer tracer = this->tracer();
  const TaskSnapshot view = task({{"TraceParent", kSampled}});
  clock_.advance(1s + 7ms);
  tracer.leased(leased(view));
  clock_.advance(10ms);
  const WallInstant began = tracer.now();
  clock_.advance(2ms);
  tracer.settled({1, 7}, SpanStep::complete, began);
  const std::vector<Span> spans = list_.take();
  ASSERT_EQ(spans.size(), 3u);
  const Span& wait = spans[0];
  const Span& lease = spans[1];
  const Span& end = spans[2];
  EXPECT_EQ(wait.step, SpanStep::wait);
  EXPECT_EQ(wait.parent, kProducer);
  EXPECT_EQ(wait.began, WallInstant{view.task.due_at});
  EXPECT_EQ(wait.ended, wait.began + 5ms);
  EXPECT_EQ(lease.step, SpanStep::lease);
  EXPECT_EQ(lease.parent, kProducer);
  EXPECT_EQ(lease.began, wait.ended);
  EXPECT_EQ(lease.ended, lease.began + 2ms);
  EXPECT_EQ(lease.attempt, 2u);
  EXPECT_EQ(end.step, SpanStep::complete);
  EXPECT_EQ(end.parent, lease.id);
  EXPECT_EQ(end.trace, lease.trace);
  EXPECT_EQ(end.queue, "q");
  EXPECT_EQ(end.task, TaskId{256});
  EXPECT_EQ(end.began, began);
  EXPECT_EQ(end.ended, began + 2ms);
  EXPECT_NE(wait.id, lease.id);
  EXPECT_NE(end.id, lease.id);
}

TEST_F(TaskTracerTest, ALeaseEndsOnce) {
  TaskTracer tracer = this->tracer();
  tracer.leased(leased(task({{"traceparent", kSampled}})));
  list_.take();
  tracer.settled({1, 7}, SpanStep::fail, tracer.now());
  tracer.settled({1, 7}, SpanStep::fail, tracer.now());
  tracer.settled({2, 7}, SpanStep::fail, tracer.now());
  EXPECT_EQ(list_.take().size(), 1u);
}

TEST_F(TaskTracerTest, ACallIsAChildOfTheLease) {
  TaskTracer tracer = this->tracer();
  tracer.leased(leased(task({{"traceparent", kSampled}})));
  const MonotonicTime began = clock_.now();
  const WallInstant began_wall = clock_.wall_now();
  clock_.advance(20ms);
  tracer.delivered({1, 7}, {.began = began, .receiver = "a:1", .status = 500, .error = "e"});
  tracer.delivered({1, 8}, {.began = began, .receiver = "a:1"});
  const std::vector<Span> spans = list_.take();
  ASSERT_EQ(spans.size(), 3u);
  const Span& call = spans[2];
  EXPECT_EQ(call.parent, spans[1].id);
  EXPECT_EQ(call.began, began_wall);
  EXPECT_EQ(call.ended, began_wall + 20ms);
  EXPECT_EQ(call.receiver, "a:1");
  EXPECT_EQ(call.status, 500);
  EXPECT_EQ(call.error, "e");
}

TEST_F(TaskTracerTest, NoSpanEndsBeforeItBeganWhenTheClockSteps) {
  TaskTracer tracer = this->tracer();
  TaskHeaders headers{{"traceparent", kSampled}};
  const TaskSnapshot view = task(headers);
  const auto accept = tracer.begin_accept(headers);
  const WallInstant began = tracer.now();
  clock_.step_wall(-1h);
  tracer.accepted(*accept, view);
  tracer.leased(leased(view));
  tracer.settled({1, 7}, SpanStep::release, began);
  const std::vector<Span> spans = list_.take();
  ASSERT_EQ(spans.size(), 4u);
  for (const Span& span : spans) EXPECT_LE(span.began, span.ended) << to_string(span.step);
}

TEST_F(TaskTracerTest, TheOldestLeaseIsForgottenAtTheLimit) {
  TaskTracer tracer = this->tracer();
  const TaskSnapshot view = task({{"traceparent", kSampled}});
  for (std::uint64_t lease = 1; lease <= TaskTracer::kMaxLeases + 1; ++lease) {
    tracer.leased(leased(view, lease));
  }
  list_.take();
  tracer.settled({1, 1}, SpanStep::complete, tracer.now());
  EXPECT_TRUE(list_.take().empty());
  tracer.settled({1, 2}, SpanStep::complete, tracer.now());
  tracer.settled({1, TaskTracer::kMaxLeases + 1}, SpanStep::complete, tracer.now());
  EXPECT_EQ(list_.take().size(), 2u);
}

TEST(TaskTracer, WithoutAnEndpointThereIsNone) {
  SystemClock clock;
  EXPECT_EQ(TaskTracer::start({}, clock).value(), nullptr);
  const auto wrong = TaskTracer::start({.endpoint = "collector"}, clock);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(wrong.error().message.find("--otlp-endpoint"), std::string::npos);
}

}  // namespace
}  // namespace detent
