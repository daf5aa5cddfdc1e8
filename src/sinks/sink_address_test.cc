#include "sinks/sink_address.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

using Kind = SinkAddress::Kind;

std::string refusal(std::string_view url) {
  const auto address = parse_sink_address(url);
  if (address) return "";
  EXPECT_EQ(address.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(address.error().field, "sinks");
  return address.error().message.substr(0, address.error().message.find(';'));
}

TEST(SinkAddress, ReadsAllParts) {
  EXPECT_EQ(
      parse_sink_address("kafka://a:1,[::1]:9092/t.x?compression.codec=lz4&sasl.password=%26=")
          .value(),
      (SinkAddress{.kind = Kind::kafka,
                   .brokers = {"a:1", "[::1]:9092"},
                   .target = "t.x",
                   .settings = {{"compression.codec", "lz4"}, {"sasl.password", "&="}}}));
  EXPECT_EQ(parse_sink_address("nats://ada:p%40s:w/@h:4222/a.b").value(),
            (SinkAddress{.kind = Kind::nats,
                         .brokers = {"h:4222"},
                         .target = "a.b",
                         .user = "ada",
                         .password = "p@s:w/"}));
  EXPECT_EQ(parse_sink_address("redis://:x@h:6379/mail?maxlen=1000").value(),
            (SinkAddress{.kind = Kind::redis,
                         .brokers = {"h:6379"},
                         .target = "mail",
                         .password = "x",
                         .settings = {{"maxlen", "1000"}}}));
}

TEST(SinkAddress, RefusesAWrongAddressWithoutRepeatingIt) {
  const std::pair<const char*, const char*> wrongs[] = {
      {"", "the address must begin with kafka://, nats:// or redis://"},
      {"amqp://secret@h:1/t", "the address must begin with kafka://, nats:// or redis://"},
      {"kafka:", "the address must begin with kafka://, nats:// or redis://"},
      {"kafka:///t", "the address has no broker"},
      {"kafka://h/t", "each broker must be HOST:PORT, with commas between brokers"},
      {"kafka://h:0/t", "each broker must be HOST:PORT, with commas between brokers"},
      {"kafka://h:65536/t", "each broker must be HOST:PORT, with commas between brokers"},
      {"kafka://h:1,:2/t", "each broker must be HOST:PORT, with commas between brokers"},
      {"kafka://::1:2/t", "each broker must be HOST:PORT, with commas between brokers"},
      {"redis://h:1,g:2/t", "a Redis address must have only one HOST:PORT"},
      {"kafka://ada:secret@h:1/t",
       "the log-in to Kafka must be in ?sasl.username=USER&sasl.password=PASSWORD"},
      {"nats://secret@h:1/t", "the log-in before the @ must be USER:PASSWORD"},
      {"nats://h:1",
       "a /, and a topic, subject or stream without * and >, must follow the brokers"},
      {"nats://h:1/",
       "a /, and a topic, subject or stream without * and >, must follow the brokers"},
      {"nats://h:1/a.>",
       "a /, and a topic, subject or stream without * and >, must follow the brokers"},
      {"nats://h:1/t%0A", "the address must be printable ASCII"},
      {"nats://h:1/t%4", "a % must be followed by two hexadecimal digits"},
      {"nats://h:1/t?a=b", "a NATS address must end after the subject"},
      {"redis://h:1/t?maxlen=0",
       "only ?maxlen=N, with N greater than 0, may follow the stream of a Redis address"},
      {"redis://h:1/t?minid=1",
       "only ?maxlen=N, with N greater than 0, may follow the stream of a Redis address"}};
  for (const auto& [url, why] : wrongs) EXPECT_EQ(refusal(url), why) << url;
  EXPECT_EQ(parse_sink_address("nats://secret@h:1/t").error().message.find("secret"),
            std::string::npos);
}

TEST(SinkLinesOfAFile, EachIsANameAndAnAddress) {
  const auto sinks =
      parse_sink_lines("# brokers\n\n  orders\tkafka://h:1/t  \r\nmail-2.x redis://h:2/s");
  ASSERT_TRUE(sinks);
  EXPECT_EQ(sinks->size(), 2u);
  EXPECT_EQ(sinks->at("orders").target, "t");
  EXPECT_EQ(sinks->at("mail-2.x").brokers.front(), "h:2");
}

TEST(SinkLinesOfAFile, ErrorsNameTheLineAndNotTheSecret) {
  for (const char* const lines :
       {"a redis://h:1/s\nb redis://ada:secret@h:1", "a redis://h:1/s\na redis://:secret@h:1/s",
        "#\nno/name redis://:secret@h:1/s", "\nalone"}) {
    const auto sinks = parse_sink_lines(lines);
    ASSERT_FALSE(sinks) << lines;
    EXPECT_EQ(sinks.error().message.find("line 2: "), 0u) << sinks.error().message;
    EXPECT_EQ(sinks.error().message.find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace detent
