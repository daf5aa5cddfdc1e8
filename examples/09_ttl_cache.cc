// A cache whose entries expire, shared between threads: sessions end five minutes after their last
// use. A scheduler removes them on time and calls on_expire. The program moves the clock itself, so
// minutes pass at once. Without `.clock`, the scheduler uses the system clock.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "detent/delay_map.h"
#include "detent/scheduler.h"

using namespace std::chrono_literals;

namespace {

struct Session {
  std::string user;
  int requests = 0;
};

}  // namespace

int main() {
  detent::ManualClock clock;
  detent::Scheduler scheduler({.clock = &clock});
  const auto pass = [&](std::chrono::seconds time) {
    clock.advance(time);
    clock.await_waiters(1);  // the scheduler sleeps: all due work is done
  };

  int ended = 0;
  detent::DelayMap<std::string, Session> sessions(
      {.on_expire =
           [&](const std::string& token, const Session& session) {
             std::printf("%s: %s has gone after %d requests\n", token.c_str(), session.user.c_str(),
                         session.requests);
             ++ended;
           },
       .scheduler = &scheduler});

  sessions.insert_or_assign("token-1", Session{.user = "ada"}, 5min);
  sessions.insert_or_assign("token-2", Session{.user = "bob"}, 5min);

  pass(4min);
  sessions.with("token-1", [](Session& session) { ++session.requests; });
  sessions.touch("token-1", 5min);  // a request: expires five minutes from here

  pass(1min);
  const bool bob_is_gone = !sessions.contains("token-2") && ended == 1;
  const std::optional<Session> ada = sessions.get("token-1");
  const bool ada_is_there = ada && ada->requests == 1;

  pass(4min);
  const bool all_are_gone = sessions.empty() && ended == 2;
  return bob_is_gone && ada_is_there && all_are_gone ? EXIT_SUCCESS : EXIT_FAILURE;
}
