// Boost.JSON reads the output, so the test does not depend on our own writer.
#include "tracing/otlp_json.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <string>
#include <vector>

namespace detent {
namespace {

namespace bj = boost::json;
using namespace std::chrono_literals;

Span span_of(SpanStep step) {
  return {.step = step,
          .trace = {0x0af7651916cd43dd, 0x8448eb211c80319c},
          .id = {0x00f067aa0ba902b7},
          .parent = {1},
          .began = WallInstant{1'577'836'800'123'456'789ns},
          .ended = WallInstant{1'577'836'801s},
          .queue = "orders",
          .task = {256}};
}

bj::object written(const std::vector<Span>& spans, const TracedService& service = {"1.2", ""}) {
  return bj::parse(render_otlp(spans, service)).as_object();
}

bj::object first_span(const bj::object& body) {
  return body.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans").at(0).as_object();
}

/// Numbers as text, as JSON of protobuf has them.
std::map<std::string, std::string> attributes_of(const bj::object& owner) {
  std::map<std::string, std::string> attributes;
  for (const bj::value& one : owner.at("attributes").as_array()) {
    const bj::object& value = one.at("value").as_object();
    EXPECT_EQ(value.size(), 1u);
    EXPECT_TRUE(attributes
                    .emplace(std::string(one.at("key").as_string()),
                             std::string(value.begin()->value().as_string()))
                    .second);
  }
  return attributes;
}

TEST(OtlpJson, IdsAreHexAndTimesAreNanosecondsAsText) {
  const bj::object span = first_span(written({span_of(SpanStep::wait)}));
  EXPECT_EQ(span.at("traceId"), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(span.at("spanId"), "00f067aa0ba902b7");
  EXPECT_EQ(span.at("parentSpanId"), "0000000000000001");
  EXPECT_EQ(span.at("name"), "wait orders");
  EXPECT_EQ(span.at("kind"), 1);
  EXPECT_EQ(span.at("startTimeUnixNano"), "1577836800123456789");
  EXPECT_EQ(span.at("endTimeUnixNano"), "1577836801000000000");
  EXPECT_FALSE(span.contains("status"));
  EXPECT_EQ(attributes_of(span),
            (std::map<std::string, std::string>{{"messaging.system", "detent"},
                                                {"messaging.destination.name", "orders"},
                                                {"messaging.message.id", "256"}}));
}

TEST(OtlpJson, TheFirstSpanOfATraceHasNoParent) {
  Span span = span_of(SpanStep::accept);
  span.parent = {};
  span.payload_bytes = 4;
  const bj::object first = first_span(written({span}));
  EXPECT_FALSE(first.contains("parentSpanId"));
  EXPECT_EQ(first.at("kind"), 2);
  EXPECT_EQ(attributes_of(first).at("messaging.message.body.size"), "4");
}

TEST(OtlpJson, OperationsAreThoseOfTheConventions) {
  const std::map<SpanStep, std::string> types{
      {SpanStep::accept, "send"},     {SpanStep::lease, "receive"}, {SpanStep::deliver, "process"},
      {SpanStep::complete, "settle"}, {SpanStep::fail, "settle"},   {SpanStep::release, "settle"},
      {SpanStep::bury, "settle"}};
  for (const auto& [step, type] : types) {
    const auto attributes = attributes_of(first_span(written({span_of(step)})));
    EXPECT_EQ(attributes.at("messaging.operation.type"), type);
    EXPECT_EQ(attributes.at("messaging.operation.name"), to_string(step));
  }
}

TEST(OtlpJson, ACallNamesItsHostAndItsFailure) {
  Span span = span_of(SpanStep::deliver);
  span.attempt = 3;
  span.receiver = "[::1]:8080";
  span.status = 503;
  span.error = "overloaded";
  const bj::object call = first_span(written({span}));
  EXPECT_EQ(call.at("kind"), 3);
  EXPECT_EQ(call.at("status").at("code"), 2);
  const auto attributes = attributes_of(call);
  EXPECT_EQ(attributes.at("detent.attempt"), "3");
  EXPECT_EQ(attributes.at("http.request.method"), "POST");
  EXPECT_EQ(attributes.at("server.address"), "[::1]");
  EXPECT_EQ(attributes.at("server.port"), "8080");
  EXPECT_EQ(attributes.at("http.response.status_code"), "503");
  EXPECT_EQ(attributes.at("error.type"), "overloaded");
}

TEST(OtlpJson, AHostWithoutAPortHasNoPort) {
  for (const char* const host : {"a.example", "[::1]"}) {
    Span span = span_of(SpanStep::deliver);
    span.receiver = host;
    const auto attributes = attributes_of(first_span(written({span})));
    EXPECT_EQ(attributes.at("server.address"), host);
    EXPECT_FALSE(attributes.contains("server.port"));
  }
}

TEST(OtlpJson, AMessageNamesItsSink) {
  Span span = span_of(SpanStep::deliver);
  span.receiver = "sink:kafka";
  const auto attributes = attributes_of(first_span(written({span})));
  EXPECT_EQ(attributes.at("detent.sink"), "kafka");
  EXPECT_FALSE(attributes.contains("server.address"));
}

TEST(OtlpJson, TheResourceNamesTheServer) {
  const bj::object alone = written({}, {"1.2", ""});
  const std::map<std::string, std::string> both{{"service.name", "detent"},
                                                {"service.version", "1.2"}};
  EXPECT_EQ(attributes_of(alone.at("resourceSpans").at(0).at("resource").as_object()), both);
  const bj::object node = written({}, {"1.2", "n1"});
  EXPECT_EQ(attributes_of(node.at("resourceSpans").at(0).at("resource").as_object())
                .at("service.instance.id"),
            "n1");
}

TEST(OtlpJson, AllSpansOfABatchAreWritten) {
  const bj::object body = written({span_of(SpanStep::wait), span_of(SpanStep::lease)});
  const bj::array spans =
      body.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans").as_array();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans.at(1).at("name"), "lease orders");
}

}  // namespace
}  // namespace detent
