// Checks every reply, byte for byte.
#include "protocol/beanstalk/reply_writer.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace detent::beanstalk {
namespace {

template <class Write, class... Values>
std::string reply(Write write, Values... values) {
  std::string out = "before ";
  write(out, values...);
  return out.substr(7);
}

TEST(ReplyWriter, WritesEveryWord) {
  const std::vector<std::pair<Word, std::string>> words{{Word::dead, "BURIED"},
                                                        {Word::deadline_soon, "DEADLINE_SOON"},
                                                        {Word::deleted, "DELETED"},
                                                        {Word::draining, "DRAINING"},
                                                        {Word::internal_error, "INTERNAL_ERROR"},
                                                        {Word::kicked, "KICKED"},
                                                        {Word::not_found, "NOT_FOUND"},
                                                        {Word::not_ignored, "NOT_IGNORED"},
                                                        {Word::out_of_memory, "OUT_OF_MEMORY"},
                                                        {Word::paused, "PAUSED"},
                                                        {Word::released, "RELEASED"},
                                                        {Word::timed_out, "TIMED_OUT"},
                                                        {Word::touched, "TOUCHED"}};
  for (const auto& [word, text] : words) EXPECT_EQ(reply(write_word, word), text + "\r\n");
  EXPECT_EQ(reply(write_refusal, Refusal::bad_format), "BAD_FORMAT\r\n");
  EXPECT_EQ(reply(write_refusal, Refusal::unknown_command), "UNKNOWN_COMMAND\r\n");
  EXPECT_EQ(reply(write_refusal, Refusal::expected_crlf), "EXPECTED_CRLF\r\n");
  EXPECT_EQ(reply(write_refusal, Refusal::job_too_big), "JOB_TOO_BIG\r\n");
}

TEST(ReplyWriter, WritesNumbersAndJobs) {
  EXPECT_EQ(reply(write_inserted, 9'007'199'254'740'991u), "INSERTED 9007199254740991\r\n");
  EXPECT_EQ(reply(write_using, "a"), "USING a\r\n");
  EXPECT_EQ(reply(write_watching, 2u), "WATCHING 2\r\n");
  EXPECT_EQ(reply(write_kicked, 0u), "KICKED 0\r\n");
  EXPECT_EQ(reply(write_reserved, 5u, std::string("a\r\nb\0", 5)),
            std::string("RESERVED 5 5\r\na\r\nb\0\r\n", 21));
  EXPECT_EQ(reply(write_found, 5u, ""), "FOUND 5 0\r\n\r\n");
  EXPECT_EQ(reply(write_ok, "---\n- a\n"), "OK 8\r\n---\n- a\n\r\n");
}

}  // namespace
}  // namespace detent::beanstalk
