// The exporter with a caller whose calls the test answers, on a clock that the test moves.
#include "tracing/span_exporter.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "net/testing/fake_caller.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

class SpanExporterTest : public ::testing::Test {
 protected:
  void add(std::size_t count, const std::string& queue = "q") {
    for (std::size_t i = 0; i < count; ++i) {
      exporter_->add({.trace = {1, 1}, .id = {i + 1}, .queue = queue});
    }
  }
  /// Waits until the exporter's thread has done all its work.
  void await_rest() const { clock_.await_waiters(1); }
  void advance(std::chrono::nanoseconds by) {
    await_rest();
    clock_.advance(by);
    await_rest();
  }
  static std::size_t spans_in(const FakeCall& call) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = call.request.body.find("\"spanId\"", at)) != std::string::npos;
         ++at) {
      ++count;
    }
    return count;
  }

  ManualClock clock_;
  Calls calls_;
  std::unique_ptr<SpanExporter> exporter_ = std::make_unique<SpanExporter>(
      SpanExporter::Target{.url = traces_url("http://127.0.0.1:4318").value(),
                           .caller = std::make_unique<FakeCaller>(calls_)},
      TracedService{.version = "1"}, clock_);
};

TEST_F(SpanExporterTest, APartOfABatchIsSentAfterTheDelay) {
  add(3);
  advance(SpanExporter::kDelay - 1ns);
  EXPECT_TRUE(calls_.empty());
  advance(1ns);
  FakeCall call = calls_.next();
  EXPECT_EQ(call.url.target, "/v1/traces");
  EXPECT_EQ(call.url.authority, "127.0.0.1:4318");
  EXPECT_EQ(call.request.header("content-type"), "application/json");
  EXPECT_EQ(spans_in(call), 3u);
  call.answer(200);
  await_rest();
  EXPECT_EQ(exporter_->counts(), (SpanCounts{.sent = 3}));
}

TEST_F(SpanExporterTest, AFullBatchIsSentAtOnceAndOneCallAtATime) {
  add(SpanExporter::kBatch + 1);
  FakeCall first = calls_.next();
  EXPECT_EQ(spans_in(first), SpanExporter::kBatch);
  add(SpanExporter::kBatch);
  await_rest();
  EXPECT_TRUE(calls_.empty());
  first.answer(204);
  FakeCall second = calls_.next();
  EXPECT_EQ(spans_in(second), SpanExporter::kBatch);
  second.answer(200);
  advance(SpanExporter::kDelay);
  FakeCall rest = calls_.next();
  EXPECT_EQ(spans_in(rest), 1u);
  rest.answer(200);
  await_rest();
  EXPECT_EQ(exporter_->counts().sent, 2 * SpanExporter::kBatch + 1);
}

TEST_F(SpanExporterTest, ABatchIsSentAgainWithGrowingPauses) {
  add(1);
  advance(SpanExporter::kDelay);
  FakeCall call = calls_.next();
  const std::string body = call.request.body;
  for (const auto pause : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
    call.answer(503);
    advance(pause - 1ns);
    EXPECT_TRUE(calls_.empty());
    advance(1ns);
    call = calls_.next();
    EXPECT_EQ(call.request.body, body);
  }
  call.done(net::CallFailure{net::CallStep::connect, net::CallFailure::Kind::failed, "refused"});
  advance(30s);
  call = calls_.next();
  call.answer(200);
  await_rest();
  EXPECT_EQ(exporter_->counts(), (SpanCounts{.sent = 1}));
  // After a success the pauses begin again.
  add(1);
  advance(SpanExporter::kDelay);
  calls_.next().answer(429);
  advance(1s);
  calls_.next().answer(200);
  await_rest();
  EXPECT_EQ(exporter_->counts(), (SpanCounts{.sent = 2}));
}

TEST_F(SpanExporterTest, ARefusedBatchIsCountedAndNotSentAgain) {
  add(2, "refused");
  advance(SpanExporter::kDelay);
  calls_.next().answer(400);
  await_rest();
  EXPECT_EQ(exporter_->counts(), (SpanCounts{.refused = 2}));
  add(1, "next");
  advance(SpanExporter::kDelay);
  FakeCall call = calls_.next();
  EXPECT_NE(call.request.body.find("next"), std::string::npos);
  call.answer(200);
  await_rest();
  EXPECT_EQ(exporter_->counts(), (SpanCounts{.sent = 1, .refused = 2}));
}

TEST_F(SpanExporterTest, AFullBufferDropsTheNewestAndCountsThem) {
  add(SpanExporter::kBatch, "first");
  FakeCall call = calls_.next();  // which the collector does not answer
  add(SpanExporter::kMaxBuffered, "kept");
  add(5, "dropped");
  EXPECT_EQ(exporter_->counts(), (SpanCounts{.dropped = 5}));
  call.answer(200);
  for (std::size_t sent = 0; sent < SpanExporter::kMaxBuffered; sent += SpanExporter::kBatch) {
    FakeCall next = calls_.next();
    EXPECT_EQ(next.request.body.find("dropped"), std::string::npos);
    next.answer(200);
  }
  await_rest();
  EXPECT_EQ(exporter_->counts(),
            (SpanCounts{.sent = SpanExporter::kBatch + SpanExporter::kMaxBuffered, .dropped = 5}));
}

TEST_F(SpanExporterTest, TheEndSendsWhatIsLeft) {
  add(2);
  await_rest();
  Thread ending([this] { exporter_.reset(); });
  FakeCall call = calls_.next();
  EXPECT_EQ(spans_in(call), 2u);
  call.answer(200);
}

TEST_F(SpanExporterTest, TheEndDoesNotWaitLongForACollector) {
  add(2);
  await_rest();
  Thread ending([this] { exporter_.reset(); });
  (void)calls_.next();  // which the collector does not answer
  await_rest();
  clock_.advance(SpanExporter::kGrace);
}

TEST(SpanExporter, TheEndpointIsAUrlWithoutAQuery) {
  EXPECT_EQ(traces_url("http://a:4318").value().target, "/v1/traces");
  EXPECT_EQ(traces_url("http://a:4318/").value().target, "/v1/traces");
  EXPECT_EQ(traces_url("https://a/otlp").value().target, "/otlp/v1/traces");
  for (const char* const wrong : {"", "a:4318", "grpc://a", "http://a?x=1", "http://u:p@a"}) {
    EXPECT_FALSE(traces_url(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace detent
