// Errors in settings, found before any connection. tests/sinks/adapters_test.py tests with brokers.
#include "sinks/open_sinks.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

std::string refusal_of_kafka(const std::string& settings) {
  const auto sink = open_sink(parse_sink_address("kafka://127.0.0.1:1/t?" + settings).value());
  if (sink) return "";
  EXPECT_EQ(sink.error().code, ErrorCode::invalid_argument);
  return sink.error().message;
}

TEST(OpenSinks, AFolderOrNoFileIsAnErrorThatNamesIt) {
  for (const std::string file : {"/", "/nowhere/sinks"}) {
    const auto sinks = open_sinks(file);
    ASSERT_FALSE(sinks) << file;
    EXPECT_EQ(sinks.error().code, ErrorCode::unavailable);
    EXPECT_NE(sinks.error().message.find(file + ": "), std::string::npos);
  }
  EXPECT_TRUE(open_sinks("")->empty());
}

TEST(OpenSinks, AWrongKafkaSettingIsNamedWithoutItsValue) {
  EXPECT_EQ(refusal_of_kafka("sasl.password=a&b3cret=1").find("b3cret"), std::string::npos);
  EXPECT_NE(refusal_of_kafka("no.such=b3cret").find("no.such"), std::string::npos);
  EXPECT_NE(refusal_of_kafka("acks=b3cret").find("acks"), std::string::npos);
  EXPECT_EQ(refusal_of_kafka("acks=b3cret").find("b3cret"), std::string::npos);
}

TEST(OpenSinks, AKafkaTimeoutMustBeShorterThanTheDeliverers) {
  for (const char* const name : {"message.timeout.ms", "delivery.timeout.ms"}) {
    for (const char* const wrong : {"=0", "=50001", "=300000"}) {
      EXPECT_NE(refusal_of_kafka(std::string(name) + wrong).find("between 1 and 50000"),
                std::string::npos)
          << name << wrong;
    }
    EXPECT_EQ(refusal_of_kafka(std::string(name) + "=50000"), "");
  }
}

}  // namespace
}  // namespace detent
