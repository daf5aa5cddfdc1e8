// Tests every command and every kind of wrong command. Each one is sent whole, byte by byte, and
// split at every position. Also tests random bytes: the parser must not read past the input, nor
// keep more than one command.
#include "protocol/beanstalk/command_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "base/test_seed.h"

namespace detent::beanstalk {

/// Prints a command in the message of a failed test.
static std::ostream& operator<<(std::ostream& out, const Command& command) {
  return out << "verb " << static_cast<int>(command.verb) << " id " << command.id << " bound "
             << command.bound << " priority " << command.priority << " delay "
             << command.delay.count() << " time-out " << command.time_out.count() << " tube '"
             << command.queue << "' body of " << command.body.size();
}
static std::ostream& operator<<(std::ostream& out, Refusal refusal) {
  return out << "refusal " << static_cast<int>(refusal);
}

namespace {

using std::chrono::seconds;

constexpr std::size_t kMaxBody = 12;

void feed(CommandParser& parser, std::string_view bytes, std::vector<Input>& inputs) {
  while (!bytes.empty()) {
    const std::size_t taken = parser.parse(bytes);
    ASSERT_GT(taken, 0u);
    ASSERT_LE(taken, bytes.size());
    ASSERT_TRUE(parser.is_complete() || taken == bytes.size());
    bytes.remove_prefix(taken);
    if (parser.is_complete()) inputs.push_back(parser.take());
  }
}

std::vector<Input> parse_all(std::string_view bytes) {
  CommandParser parser(kMaxBody);
  std::vector<Input> inputs;
  feed(parser, bytes, inputs);
  EXPECT_TRUE(parser.is_idle()) << bytes;
  return inputs;
}

struct Case {
  std::string sent;
  std::vector<Input> inputs;
};

const std::string kLongName(200, 'a');

std::vector<Case> commands() {
  return {
      {"put 7 8 9 3\r\nabc\r\n",
       {Command{.verb = Verb::put,
                .priority = 7,
                .delay = seconds{8},
                .time_out = seconds{9},
                .body = "abc"}}},
      {"put 0 0 0 0\r\n\r\n", {Command{.verb = Verb::put}}},
      {"put  0   01 0 2\r\n\r\n\r\n",
       {Command{.verb = Verb::put, .delay = seconds{1}, .body = "\r\n"}}},
      {"put 4294967295 4294967295 4294967295 12\r\n0123456789ab\r\n",
       {Command{.verb = Verb::put,
                .priority = 4'294'967'295,
                .delay = seconds{4'294'967'295},
                .time_out = seconds{4'294'967'295},
                .body = "0123456789ab"}}},
      {"reserve\r\n", {Command{.verb = Verb::reserve}}},
      {"reserve-with-timeout 0\r\n", {Command{.verb = Verb::reserve_with_timeout}}},
      {"reserve-with-timeout 5\r\n",
       {Command{.verb = Verb::reserve_with_timeout, .time_out = seconds{5}}}},
      {"reserve-job 5\r\n", {Command{.verb = Verb::reserve_job, .id = 5}}},
      {"delete 18446744073709551615\r\n",
       {Command{.verb = Verb::delete_job, .id = std::numeric_limits<std::uint64_t>::max()}}},
      {"release 5 6 7\r\n",
       {Command{.verb = Verb::release, .id = 5, .priority = 6, .delay = seconds{7}}}},
      {"bury 5 6\r\n", {Command{.verb = Verb::bury, .id = 5, .priority = 6}}},
      {"touch 5\r\n", {Command{.verb = Verb::touch, .id = 5}}},
      {"use a_b.c/d+e;f$g(h)-9\r\n", {Command{.verb = Verb::use, .queue = "a_b.c/d+e;f$g(h)-9"}}},
      {"watch " + kLongName + "\r\n", {Command{.verb = Verb::watch, .queue = kLongName}}},
      {"ignore 123\r\n", {Command{.verb = Verb::ignore, .queue = "123"}}},
      {"peek 5\r\n", {Command{.verb = Verb::peek, .id = 5}}},
      {"peek-ready\r\n", {Command{.verb = Verb::peek_ready}}},
      {"peek-delayed\r\n", {Command{.verb = Verb::peek_delayed}}},
      {"peek-buried\r\n", {Command{.verb = Verb::peek_buried}}},
      {"kick 5000000000\r\n", {Command{.verb = Verb::kick, .bound = 5'000'000'000}}},
      {"kick-job 5\r\n", {Command{.verb = Verb::kick_job, .id = 5}}},
      {"stats\r\n", {Command{.verb = Verb::stats}}},
      {"stats-job 5\r\n", {Command{.verb = Verb::stats_job, .id = 5}}},
      {"stats-tube true\r\n", {Command{.verb = Verb::stats_tube, .queue = "true"}}},
      {"list-tubes\r\n", {Command{.verb = Verb::list_tubes}}},
      {"list-tube-used\r\n", {Command{.verb = Verb::list_tube_used}}},
      {"list-tubes-watched\r\n", {Command{.verb = Verb::list_tubes_watched}}},
      {"pause-tube a 5\r\n",
       {Command{.verb = Verb::pause_tube, .delay = seconds{5}, .queue = "a"}}},
      {"pause-tube " + kLongName + " 4294967295\r\n",  // the longest valid line
       {Command{.verb = Verb::pause_tube, .delay = seconds{4'294'967'295}, .queue = kLongName}}},
      {"quit\r\n", {Command{.verb = Verb::quit}}},
      {"quit now\r\n", {Command{.verb = Verb::quit}}},
      {"use a\r\nput 1 2 3 1\r\nx\r\nstats\r\n",
       {Command{.verb = Verb::use, .queue = "a"},
        Command{.verb = Verb::put,
                .priority = 1,
                .delay = seconds{2},
                .time_out = seconds{3},
                .body = "x"},
        Command{.verb = Verb::stats}}},
  };
}

constexpr const char* kBadLines[] = {"put ",
                                     "put 1",
                                     "put 1 2 3",
                                     "put 1 2 3 x",
                                     "put 1 2 3 4 5",
                                     "put 1 2 3 4 ",
                                     "put -1 2 3 4",
                                     "put 1 2 3 +4",
                                     "put 4294967296 2 3 4",
                                     "put 1 4294967296 3 4",
                                     "put 1 2 4294967296 4",
                                     "put 1 2 3 4294967296",
                                     "reserve x",
                                     "reservex",
                                     "reserve ",
                                     "reserve-with-timeout",
                                     "reserve-with-timeout ",
                                     "reserve-with-timeout x",
                                     "reserve-with-timeout -1",
                                     "reserve-with-timeout 1 ",
                                     "reserve-job",
                                     "reserve-job ",
                                     "reserve-job x",
                                     "delete ",
                                     "delete x",
                                     "delete 1 ",
                                     "delete 0x1",
                                     "delete 18446744073709551616",
                                     "release 1",
                                     "release 1 2",
                                     "release 1 2 x",
                                     "release 1 2 3 4",
                                     "release 1 4294967296 3",
                                     "release 1 2 4294967296",
                                     "bury 1",
                                     "bury 1 2 3",
                                     "bury 1 4294967296",
                                     "touch x",
                                     "use ",
                                     "use -a",
                                     "use a b",
                                     "use  a",
                                     "use a,b",
                                     "use a\xC3\xA9",
                                     "watch -",
                                     "ignore ",
                                     "peek x",
                                     "peek-ready x",
                                     "peek-delayedx",
                                     "peek-buried ",
                                     "kick ",
                                     "kick x",
                                     "kick -1",
                                     "kick 18446744073709551616",
                                     "kick-job x",
                                     "stats x",
                                     "stats-job x",
                                     "stats-job",
                                     "stats-tube",
                                     "stats-tube ",
                                     "list-tubes x",
                                     "list-tube-used x",
                                     "list-tubes-watched ",
                                     "pause-tube",
                                     "pause-tube ",
                                     "pause-tube a",
                                     "pause-tubea 1",
                                     "pause-tube -a 1",
                                     "pause-tube a x",
                                     "pause-tube a 4294967296",
                                     "pause-tube a 1 2"};
constexpr const char* kUnknownLines[] = {
    "",          " ",   "put",    "PUT 1 2 3 4", "delete", "release", "bury",
    "touch",     "use", "watch",  "ignore",      "peek",   "kick",    "kick-job",
    "list-tube", "foo", " stats", "\n",          "\r",     "stat",    "peek-"};

std::vector<Case> refusals() {
  std::vector<Case> cases;
  for (const char* const line : kBadLines) {
    cases.push_back({std::string(line) + "\r\n", {Refusal::bad_format}});
  }
  for (const char* const line : kUnknownLines) {
    cases.push_back({std::string(line) + "\r\n", {Refusal::unknown_command}});
  }
  const std::string too_long = "watch " + std::string(300, 'a');
  std::string with_return = too_long;
  with_return.append("\r").append(too_long);
  for (const std::string& line : {std::string("a\0b", 3), std::string("stats\0", 6), too_long,
                                  with_return, "watch " + kLongName + "a", std::string(223, ' ')}) {
    cases.push_back({line + "\r\n", {Refusal::bad_format}});
  }
  // After a refused line, the parser reads the next bytes as a new command.
  cases.push_back(
      {too_long + "\r\nstats\r\n", {Refusal::bad_format, Command{.verb = Verb::stats}}});
  cases.push_back({"put 1 2 x 3\r\nabc\r\n", {Refusal::bad_format, Refusal::unknown_command}});
  cases.push_back({"put 1 2 3 13\r\n0123456789abc\r\nstats\r\n",
                   {Refusal::job_too_big, Command{.verb = Verb::stats}}});
  cases.push_back({"put 1 2 3 13\r\n\r\nstats\r\n6789\r\nstats\r\n",
                   {Refusal::job_too_big, Command{.verb = Verb::stats}}});
  cases.push_back(
      {"put 1 2 3 2\r\nabcdstats\r\n", {Refusal::expected_crlf, Command{.verb = Verb::stats}}});
  cases.push_back(
      {"put 1 2 3 2\r\nab\r\rstats\r\n", {Refusal::expected_crlf, Command{.verb = Verb::stats}}});
  return cases;
}

void expect_however_split(const Case& expected) {
  SCOPED_TRACE(expected.sent.substr(0, 60));
  EXPECT_EQ(parse_all(expected.sent), expected.inputs);
  const std::string_view sent = expected.sent;
  for (std::size_t at = 1; at < sent.size(); ++at) {
    CommandParser parser(kMaxBody);
    std::vector<Input> inputs;
    feed(parser, sent.substr(0, at), inputs);
    feed(parser, sent.substr(at), inputs);
    ASSERT_EQ(inputs, expected.inputs) << "split at " << at;
  }
  CommandParser parser(kMaxBody);
  std::vector<Input> inputs;
  for (const char& byte : expected.sent) feed(parser, {&byte, 1}, inputs);
  EXPECT_EQ(inputs, expected.inputs);
}

TEST(CommandParser, ReadsEveryCommandHoweverItIsSplit) {
  for (const Case& expected : commands()) expect_however_split(expected);
}

TEST(CommandParser, RefusesInvalidCommandsAndContinues) {
  for (const Case& expected : refusals()) expect_however_split(expected);
}

TEST(CommandParser, IsIdleOnlyBetweenCommands) {
  CommandParser parser(kMaxBody);
  EXPECT_TRUE(parser.is_idle());
  EXPECT_EQ(parser.parse("s"), 1u);
  EXPECT_FALSE(parser.is_idle());
  EXPECT_EQ(parser.parse("tats\r\nx"), 6u);
  EXPECT_TRUE(parser.is_complete());
  parser.take();
  EXPECT_TRUE(parser.is_idle());
  const std::string too_long(1'000, 'a');
  EXPECT_EQ(parser.parse(too_long), too_long.size());
  EXPECT_FALSE(parser.is_idle());
  EXPECT_EQ(parser.parse("\r\nput 0 0 0 1\r\n"), 2u);
  parser.take();
  EXPECT_EQ(parser.parse("put 0 0 0 1\r\n"), 13u);
  EXPECT_FALSE(parser.is_idle()) << "the body is to come";
}

TEST(CommandParser, RandomBytesGiveTheSameInputsHoweverTheyAreSplit) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::vector<std::string> pieces{"\r", "\n", "\r\n", " ", "9", "put 0 0 0 ", std::string(1, '\0')};
  for (const Case& one : commands()) pieces.push_back(one.sent);
  for (int round = 0; round < 2'000; ++round) {
    std::string bytes;
    for (std::uint32_t parts = 1 + rng.below(12); parts > 0; --parts) {
      std::string piece = pieces[rng.below(static_cast<std::uint32_t>(pieces.size()))];
      if (rng.below(4) == 0)
        piece[rng.below(static_cast<std::uint32_t>(piece.size()))] =
            static_cast<char>(rng.below(256));
      bytes += piece;
    }
    CommandParser whole(kMaxBody);
    CommandParser split(kMaxBody);
    std::vector<Input> from_whole;
    std::vector<Input> from_split;
    feed(whole, bytes, from_whole);
    for (std::string_view rest = bytes; !rest.empty();) {
      const std::size_t size = std::min<std::size_t>(1 + rng.below(20), rest.size());
      feed(split, rest.substr(0, size), from_split);
      rest.remove_prefix(size);
    }
    ASSERT_EQ(from_whole, from_split) << bytes;
    for (const Input& input : from_whole) {
      if (const auto* command = std::get_if<Command>(&input)) {
        ASSERT_LE(command->body.size(), kMaxBody);
      }
    }
  }
}

}  // namespace
}  // namespace detent::beanstalk
