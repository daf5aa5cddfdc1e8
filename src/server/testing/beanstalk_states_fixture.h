// Tests every command on a job in every state of a job: the reply, and the state afterwards. The
// table is the table of docs/reference/beanstalk.md; beanstalkd 1.12 answers the same. Used by the
// tests of a single server and of a cluster.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "server/testing/beanstalk_fixture.h"

namespace detent::server {
namespace states {

enum class Was : std::uint8_t { nowhere, ready, delayed, mine, others, dead };
inline constexpr std::array kStates{Was::nowhere, Was::ready,  Was::delayed,
                                    Was::mine,    Was::others, Was::dead};
inline constexpr std::array<const char*, 6> kNames{"none",     "ready",    "delayed",
                                                   "reserved", "reserved", "buried"};

struct Row {
  const char* command;  // % is the id
  std::array<const char*, 6> replies;
  std::array<const char*, 6> after;
};

inline constexpr auto kSame = kNames;

// "-" is NOT_FOUND. Columns: no such job, ready, delayed, reserved by this client, by another,
// buried.
// clang-format off
inline const std::array kRows{
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

/// Makes a job in that state, in a queue of its own, and returns its id.
inline std::string make(BeanstalkClient& me, BeanstalkClient& other, Was was,
                        const std::string& queue) {
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

}  // namespace states

/// `me` and `other` connect again for every job.
inline void expect_replies_of_the_table(const std::function<BeanstalkClient()>& connect_me,
                                        const std::function<BeanstalkClient()>& connect_other) {
  int number = 0;
  for (const states::Row& row : states::kRows) {
    for (std::size_t i = 0; i < states::kStates.size(); ++i) {
      BeanstalkClient me = connect_me();
      BeanstalkClient other = connect_other();
      const std::string id =
          states::make(me, other, states::kStates[i], "q" + std::to_string(++number));
      std::string command = row.command;
      if (const std::size_t at = command.find('%'); at != std::string::npos) {
        command.replace(at, 1, id);
      }
      SCOPED_TRACE(command + ", was " + states::kNames[i]);
      ASSERT_EQ(me.state_of(id), states::kNames[i]);
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

}  // namespace detent::server
