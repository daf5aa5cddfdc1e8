// Every command on a job in every state it can be in: the reply, and the state after it. The table
// is that of docs/reference/beanstalk.md; beanstalkd 1.12 answers the same.
#include <array>

#include "server/beanstalk_fixture.h"

namespace detent::server {
namespace {

enum class Was : std::uint8_t { nowhere, ready, delayed, mine, others, dead };
constexpr std::array kStates{Was::nowhere, Was::ready,  Was::delayed,
                             Was::mine,    Was::others, Was::dead};
constexpr std::array<const char*, 6> kNames{"none",     "ready",    "delayed",
                                            "reserved", "reserved", "buried"};

struct Row {
  const char* command;  // % is the id
  std::array<const char*, 6> replies;
  std::array<const char*, 6> after;
};

constexpr auto kSame = kNames;

// "-" is NOT_FOUND. Columns: no such job, ready, delayed, reserved by this client, by another,
// buried.
// clang-format off
const std::array kRows{
    Row{"delete %", {"-", "DELETED", "DELETED", "DELETED", "-", "DELETED"},
        {"none", "none", "none", "none", "reserved", "none"}},
    Row{"release % 5 0", {"-", "-", "-", "RELEASED", "-", "-"},
        {"none", "ready", "delayed", "ready", "reserved", "buried"}},
    Row{"release % 5 9", {"-", "-", "-", "RELEASED", "-", "-"},
        {"none", "ready", "delayed", "delayed", "reserved", "buried"}},
    Row{"bury % 5", {"-", "-", "-", "BURIED", "-", "-"},
        {"none", "ready", "delayed", "buried", "reserved", "buried"}},
    Row{"touch %", {"-", "-", "-", "TOUCHED", "-", "-"},
        kSame},
    Row{"kick-job %", {"-", "-", "KICKED", "-", "-", "KICKED"},
        {"none", "ready", "ready", "reserved", "reserved", "ready"}},
    Row{"kick 10", {"KICKED 0", "KICKED 0", "KICKED 1", "KICKED 0", "KICKED 0", "KICKED 1"},
        {"none", "ready", "ready", "reserved", "reserved", "ready"}},
    Row{"kick 0", {"KICKED 0", "KICKED 0", "KICKED 0", "KICKED 0", "KICKED 0", "KICKED 0"},
        kSame},
    Row{"reserve-job %", {"-", "RESERVED", "RESERVED", "-", "-", "RESERVED"},
        {"none", "reserved", "reserved", "reserved", "reserved", "reserved"}},
    Row{"reserve-with-timeout 0",
        {"TIMED_OUT", "RESERVED", "TIMED_OUT", "TIMED_OUT", "TIMED_OUT", "TIMED_OUT"},
        {"none", "reserved", "delayed", "reserved", "reserved", "buried"}},
    Row{"peek %", {"-", "FOUND", "FOUND", "FOUND", "FOUND", "FOUND"}, kSame},
    Row{"peek-ready", {"-", "FOUND", "-", "-", "-", "-"}, kSame},
    Row{"peek-delayed", {"-", "-", "FOUND", "-", "-", "-"}, kSame},
    Row{"peek-buried", {"-", "-", "-", "-", "-", "FOUND"}, kSame},
    Row{"stats-job %", {"-", "OK", "OK", "OK", "OK", "OK"}, kSame},
};
// clang-format on

class BeanstalkStates : public BeanstalkTest {
 protected:
  /// A job of a queue of its own, in that state; its id.
  std::string make(BeanstalkClient& me, BeanstalkClient& other, Was was, const std::string& queue) {
    for (BeanstalkClient* const client : {&me, &other}) {
      EXPECT_EQ(client->ask("use " + queue), "USING " + queue);
      EXPECT_EQ(client->ask("watch " + queue), "WATCHING 2");
      EXPECT_EQ(client->ask("ignore default"), "WATCHING 1");
    }
    if (was == Was::nowhere) return "4503599627370496";
    std::string id = me.put(was == Was::delayed ? "7 30 60" : "7 0 60");
    if (was == Was::mine || was == Was::dead) me.ask("reserve-job " + id);
    if (was == Was::others) other.ask("reserve-job " + id);
    if (was == Was::dead) me.ask("bury " + id + " 7");
    return id;
  }
};

TEST_F(BeanstalkStates, EveryCommandAnswersAsTheTableSays) {
  int number = 0;
  for (const Row& row : kRows) {
    for (std::size_t i = 0; i < kStates.size(); ++i) {
      BeanstalkClient me = connect();
      BeanstalkClient other = connect();
      const std::string id = make(me, other, kStates[i], "q" + std::to_string(++number));
      std::string command = row.command;
      if (const std::size_t at = command.find('%'); at != std::string::npos) {
        command.replace(at, 1, id);
      }
      SCOPED_TRACE(command + ", was " + kNames[i]);
      ASSERT_EQ(me.state_of(id), kNames[i]);
      std::string expected = row.replies[i];
      if (expected == "-") expected = "NOT_FOUND";
      if (expected == "RESERVED" || expected == "FOUND") expected += " " + id + " 4\nbody";
      std::string reply = me.ask(command);
      if (expected == "OK") reply = reply.substr(0, 2);
      EXPECT_EQ(reply, expected);
      EXPECT_EQ(me.state_of(id), row.after[i]);
    }
  }
}

}  // namespace
}  // namespace detent::server
