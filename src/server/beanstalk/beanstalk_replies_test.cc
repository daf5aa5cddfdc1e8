// Every command of the beanstalk protocol 1.12 with every reply that the protocol document allows.
// Each row of the table has the state before, the command and the reply. A test compares the table
// with the list of the document. The state after a command is tested in beanstalk_states_test.cc.
//
// The document allows some replies that this server never sends:
//  - BURIED after a put or a release. The document has it for a server without memory for its
//    order of priorities, but this server keeps the order on disk. If there are too many tasks, the
//    reply to the put is OUT_OF_MEMORY.
//  - OUT_OF_MEMORY after a command that adds no task, queue or lease. An exception is peek-delayed,
//    which searches in steps and fails if too many commands wait. No test can arrange this.
//  - Any reply to `quit`: the connection ends, even if the line has more words.
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/testing/beanstalk_fixture.h"

namespace detent::server {
namespace {

/// The replies that the document allows for each command, without its general errors.
const std::map<std::string, std::set<std::string>> kDocumented{
    {"put", {"INSERTED", "BURIED", "EXPECTED_CRLF", "JOB_TOO_BIG", "DRAINING"}},
    {"use", {"USING"}},
    {"reserve", {"RESERVED", "DEADLINE_SOON", "TIMED_OUT"}},
    {"reserve-with-timeout", {"RESERVED", "DEADLINE_SOON", "TIMED_OUT"}},
    {"reserve-job", {"RESERVED", "NOT_FOUND"}},
    {"delete", {"DELETED", "NOT_FOUND"}},
    {"release", {"RELEASED", "BURIED", "NOT_FOUND"}},
    {"bury", {"BURIED", "NOT_FOUND"}},
    {"touch", {"TOUCHED", "NOT_FOUND"}},
    {"watch", {"WATCHING"}},
    {"ignore", {"WATCHING", "NOT_IGNORED"}},
    {"peek", {"FOUND", "NOT_FOUND"}},
    {"peek-ready", {"FOUND", "NOT_FOUND"}},
    {"peek-delayed", {"FOUND", "NOT_FOUND"}},
    {"peek-buried", {"FOUND", "NOT_FOUND"}},
    {"kick", {"KICKED"}},
    {"kick-job", {"KICKED", "NOT_FOUND"}},
    {"stats-job", {"OK", "NOT_FOUND"}},
    {"stats-tube", {"OK", "NOT_FOUND"}},
    {"stats", {"OK"}},
    {"list-tubes", {"OK"}},
    {"list-tube-used", {"USING"}},
    {"list-tubes-watched", {"OK"}},
    {"pause-tube", {"PAUSED", "NOT_FOUND"}},
    {"quit", {}},
};
/// "Clients should be prepared to receive an error response after any command."
const std::set<std::string> kToAny{"OUT_OF_MEMORY", "INTERNAL_ERROR", "BAD_FORMAT",
                                   "UNKNOWN_COMMAND"};

using Pair = std::pair<std::string, std::string>;  // a command and the first word of a reply
const std::set<Pair> kNever{{"put", "BURIED"}, {"release", "BURIED"}};
const std::set<Pair> kWithoutRoom{
    {"put", "OUT_OF_MEMORY"}, {"watch", "OUT_OF_MEMORY"}, {"reserve-job", "OUT_OF_MEMORY"}};

class BeanstalkReplies : public BeanstalkTest {
 public:
  // ---- preparations of a command ----
  void nothing() {}
  void ready() { id_ = me_->put("7 0 10"); }
  void delayed() { id_ = me_->put("7 30 10"); }
  void mine() {
    ready();
    me_->ask("reserve-job " + id_);
  }
  void others() {
    ready();
    other_->ask("reserve-job " + id_);
  }
  void dead() {
    mine();
    me_->ask("bury " + id_ + " 7");
  }
  void in_its_last_second() {
    mine();
    advance(9s);
  }
  void draining() { beanstalk_->drain(); }
  void full() {
    ready();
    EXPECT_EQ(send("PATCH", "/v1/queues/default", R"({"max_tasks":1})").status, 200);
  }
  void no_lease_left() {
    others();
    ready();
    EXPECT_EQ(send("PATCH", "/v1/queues/default", R"({"concurrency":1})").status, 200);
  }
  void watching_two() { EXPECT_EQ(me_->ask("watch a"), "WATCHING 2"); }
  void watching_a_thousand() {
    for (int i = 2; i <= 1'000; ++i) me_->ask("watch q" + std::to_string(i));
  }
  void broken() {
    const auto fail = [this](Engine&) { store_->fail_write(1, WriteFault::not_applied); };
    ASSERT_TRUE(engine_->post(fail));
    EXPECT_EQ(other_->ask("put 0 0 60 0\r\n"), "INTERNAL_ERROR");
  }

  // ---- events while a command waits ----
  void a_put() {
    await_waiting(*other_, "1");
    id_ = other_->put();
  }
  void five_seconds() {
    await_waiting(*other_, "1");
    advance(5s);
  }
  void nine_seconds() {
    await_waiting(*other_, "1");
    advance(9s);
  }
  void my_end() {
    await_waiting(*other_, "1");
    me_->socket().shut_down_sending();
  }

  using Happening = void (BeanstalkReplies::*)();
  struct Row {
    Happening before;
    std::string command;  // % is the job's id
    std::string reply;    // a regular expression; % as above
    Happening meanwhile = &BeanstalkReplies::nothing;
  };
  static Pair pair_of(const Row& row) {
    return {row.command.substr(0, row.command.find_first_of(" \r")),
            row.reply.substr(0, row.reply.find(' '))};
  }

 protected:
  /// An empty server and two clients.
  void renew() {
    me_.reset();
    other_.reset();
    beanstalk_->stop(0ms);
    begin_anew();
    serve();
    me_ = std::make_unique<BeanstalkClient>(beanstalk_->port());
    other_ = std::make_unique<BeanstalkClient>(beanstalk_->port());
    id_ = "4503599627370496";  // no task has this id
  }
  std::string with_id(std::string text) const {
    const std::size_t at = text.find('%');
    return at == std::string::npos ? text : text.replace(at, 1, id_);
  }

  std::unique_ptr<BeanstalkClient> me_;
  std::unique_ptr<BeanstalkClient> other_;
  std::string id_;
};

using In = BeanstalkReplies;

// clang-format off
const std::string kTooBig = "put 0 0 60 65536\r\n" + std::string(65'536, 'x');
const std::string kFields = "([a-z-]+: .+\n)";

const std::vector<BeanstalkReplies::Row> kRows{
    {&In::nothing, "put 0 0 60 4\r\nbody", "INSERTED [0-9]+"},
    {&In::nothing, "put 0 9 60 4\r\nbody", "INSERTED [0-9]+"},
    {&In::nothing, "put 0 0 60 4\r\nbodies", "EXPECTED_CRLF"},
    {&In::nothing, kTooBig, "JOB_TOO_BIG"},
    {&In::draining, "put 0 0 60 4\r\nbody", "DRAINING"},
    {&In::full, "put 0 0 60 4\r\nbody", "OUT_OF_MEMORY"},
    {&In::nothing, "use a", "USING a"},
    {&In::ready, "reserve", "RESERVED % 4\nbody"},
    {&In::nothing, "reserve", "RESERVED % 4\nbody", &In::a_put},
    {&In::in_its_last_second, "reserve", "DEADLINE_SOON"},
    {&In::mine, "reserve", "DEADLINE_SOON", &In::nine_seconds},
    {&In::nothing, "reserve", "TIMED_OUT", &In::my_end},
    {&In::ready, "reserve-with-timeout 0", "RESERVED % 4\nbody"},
    {&In::nothing, "reserve-with-timeout 9", "RESERVED % 4\nbody", &In::a_put},
    {&In::in_its_last_second, "reserve-with-timeout 0", "DEADLINE_SOON"},
    {&In::mine, "reserve-with-timeout 99", "DEADLINE_SOON", &In::nine_seconds},
    {&In::nothing, "reserve-with-timeout 0", "TIMED_OUT"},
    {&In::nothing, "reserve-with-timeout 5", "TIMED_OUT", &In::five_seconds},
    {&In::ready, "reserve-job %", "RESERVED % 4\nbody"},
    {&In::delayed, "reserve-job %", "RESERVED % 4\nbody"},
    {&In::dead, "reserve-job %", "RESERVED % 4\nbody"},
    {&In::nothing, "reserve-job %", "NOT_FOUND"},
    {&In::others, "reserve-job %", "NOT_FOUND"},
    {&In::no_lease_left, "reserve-job %", "OUT_OF_MEMORY"},
    {&In::mine, "delete %", "DELETED"},
    {&In::ready, "delete %", "DELETED"},
    {&In::dead, "delete %", "DELETED"},
    {&In::nothing, "delete %", "NOT_FOUND"},
    {&In::others, "delete %", "NOT_FOUND"},
    {&In::mine, "release % 7 0", "RELEASED"},
    {&In::mine, "release % 7 9", "RELEASED"},
    {&In::nothing, "release % 7 0", "NOT_FOUND"},
    {&In::others, "release % 7 0", "NOT_FOUND"},
    {&In::mine, "bury % 7", "BURIED"},
    {&In::nothing, "bury % 7", "NOT_FOUND"},
    {&In::others, "bury % 7", "NOT_FOUND"},
    {&In::mine, "touch %", "TOUCHED"},
    {&In::in_its_last_second, "touch %", "TOUCHED"},
    {&In::nothing, "touch %", "NOT_FOUND"},
    {&In::others, "touch %", "NOT_FOUND"},
    {&In::nothing, "watch a", "WATCHING 2"},
    {&In::watching_two, "watch a", "WATCHING 2"},
    {&In::watching_a_thousand, "watch a", "OUT_OF_MEMORY"},
    {&In::watching_two, "ignore default", "WATCHING 1"},
    {&In::nothing, "ignore a", "WATCHING 1"},
    {&In::nothing, "ignore default", "NOT_IGNORED"},
    {&In::others, "peek %", "FOUND % 4\nbody"},
    {&In::nothing, "peek %", "NOT_FOUND"},
    {&In::ready, "peek-ready", "FOUND % 4\nbody"},
    {&In::delayed, "peek-ready", "NOT_FOUND"},
    {&In::delayed, "peek-delayed", "FOUND % 4\nbody"},
    {&In::dead, "peek-delayed", "NOT_FOUND"},
    {&In::dead, "peek-buried", "FOUND % 4\nbody"},
    {&In::ready, "peek-buried", "NOT_FOUND"},
    {&In::dead, "kick 9", "KICKED 1"},
    {&In::delayed, "kick 9", "KICKED 1"},
    {&In::ready, "kick 9", "KICKED 0"},
    {&In::dead, "kick-job %", "KICKED"},
    {&In::delayed, "kick-job %", "KICKED"},
    {&In::ready, "kick-job %", "NOT_FOUND"},
    {&In::nothing, "kick-job %", "NOT_FOUND"},
    {&In::mine, "stats-job %", "OK [0-9]+\n---\nid: %\ntube: default\n" + kFields + "{12}"},
    {&In::nothing, "stats-job %", "NOT_FOUND"},
    {&In::nothing, "stats-tube default", "OK [0-9]+\n---\nname: default\n" + kFields + "{13}"},
    {&In::nothing, "stats-tube a", "NOT_FOUND"},
    {&In::nothing, "stats", "OK [0-9]+\n---\n" + kFields + "{51}"},
    {&In::watching_two, "list-tubes", "OK 18\n---\n- a\n- default\n"},
    {&In::nothing, "list-tube-used", "USING default"},
    {&In::watching_two, "list-tubes-watched", "OK 18\n---\n- default\n- a\n"},
    {&In::nothing, "pause-tube default 9", "PAUSED"},
    {&In::nothing, "pause-tube a 9", "NOT_FOUND"},
    {&In::nothing, "quit", "<end>"},
    {&In::nothing, "quit now", "<end>"},

    {&In::nothing, "", "UNKNOWN_COMMAND"},
    {&In::nothing, "nonsense", "UNKNOWN_COMMAND"},
    {&In::nothing, "PUT 0 0 60 4", "UNKNOWN_COMMAND"},
    {&In::nothing, "reserve-mode fifo", "BAD_FORMAT"},  // of a later version
    {&In::nothing, "use", "UNKNOWN_COMMAND"},
    {&In::nothing, "put 0 0 60", "BAD_FORMAT"},
    {&In::nothing, "use -a", "BAD_FORMAT"},
    {&In::nothing, "use " + std::string(201, 'a'), "BAD_FORMAT"},
    {&In::nothing, "use " + std::string(250, 'a'), "BAD_FORMAT"},
    {&In::nothing, "reserve 1", "BAD_FORMAT"},
    {&In::nothing, "reserve-with-timeout soon", "BAD_FORMAT"},
    {&In::nothing, "reserve-job", "BAD_FORMAT"},
    {&In::nothing, "delete a", "BAD_FORMAT"},
    {&In::nothing, "release 1 7", "BAD_FORMAT"},
    {&In::nothing, "bury 1", "BAD_FORMAT"},
    {&In::nothing, "touch a", "BAD_FORMAT"},
    {&In::nothing, "watch -a", "BAD_FORMAT"},
    {&In::nothing, "ignore a b", "BAD_FORMAT"},
    {&In::nothing, "peek 1 2", "BAD_FORMAT"},
    {&In::nothing, "peek-ready 1", "BAD_FORMAT"},
    {&In::nothing, "peek-delayed 1", "BAD_FORMAT"},
    {&In::nothing, "peek-buried 1", "BAD_FORMAT"},
    {&In::nothing, "kick all", "BAD_FORMAT"},
    {&In::nothing, "kick-job -1", "BAD_FORMAT"},
    {&In::nothing, "stats-job a", "BAD_FORMAT"},
    {&In::nothing, "stats-tube a,b", "BAD_FORMAT"},
    {&In::nothing, "stats now", "BAD_FORMAT"},
    {&In::nothing, "list-tubes a", "BAD_FORMAT"},
    {&In::nothing, "list-tube-used a", "BAD_FORMAT"},
    {&In::nothing, "list-tubes-watched a", "BAD_FORMAT"},
    {&In::nothing, "pause-tube default", "BAD_FORMAT"},

    {&In::broken, "put 0 0 60 4\r\nbody", "INTERNAL_ERROR"},
    {&In::broken, "use a", "INTERNAL_ERROR"},
    {&In::broken, "reserve", "INTERNAL_ERROR"},
    {&In::broken, "reserve-with-timeout 9", "INTERNAL_ERROR"},
    {&In::broken, "reserve-job 256", "INTERNAL_ERROR"},
    {&In::broken, "delete 256", "INTERNAL_ERROR"},
    {&In::broken, "release 256 7 0", "INTERNAL_ERROR"},
    {&In::broken, "bury 256 7", "INTERNAL_ERROR"},
    {&In::broken, "touch 256", "INTERNAL_ERROR"},
    {&In::broken, "watch a", "INTERNAL_ERROR"},
    {&In::broken, "ignore a", "INTERNAL_ERROR"},
    {&In::broken, "peek 256", "INTERNAL_ERROR"},
    {&In::broken, "peek-ready", "INTERNAL_ERROR"},
    {&In::broken, "peek-delayed", "INTERNAL_ERROR"},
    {&In::broken, "peek-buried", "INTERNAL_ERROR"},
    {&In::broken, "kick 9", "INTERNAL_ERROR"},
    {&In::broken, "kick-job 256", "INTERNAL_ERROR"},
    {&In::broken, "stats-job 256", "INTERNAL_ERROR"},
    {&In::broken, "stats-tube default", "INTERNAL_ERROR"},
    {&In::broken, "stats", "INTERNAL_ERROR"},
    {&In::broken, "list-tubes", "INTERNAL_ERROR"},
    {&In::broken, "list-tube-used", "INTERNAL_ERROR"},
    {&In::broken, "list-tubes-watched", "INTERNAL_ERROR"},
    {&In::broken, "pause-tube default 9", "INTERNAL_ERROR"},
};
// clang-format on

TEST_F(BeanstalkReplies, EveryRowOfTheTableIsTrue) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.command.substr(0, 40) + " -> " + row.reply);
    renew();
    (this->*row.before)();
    me_->send(with_id(row.command));
    (this->*row.meanwhile)();
    const std::string reply = me_->read();
    EXPECT_TRUE(std::regex_match(reply, std::regex(with_id(row.reply)))) << reply;
  }
}

TEST_F(BeanstalkReplies, TheTableHasAllThatIsDocumentedAndNothingElse) {
  std::set<Pair> needed = kWithoutRoom;
  for (const auto& [command, replies] : kDocumented) {
    for (const std::string& reply : replies) needed.emplace(command, reply);
    if (command == "quit") continue;
    needed.emplace(command, "BAD_FORMAT");
    needed.emplace(command, "INTERNAL_ERROR");
  }
  needed.emplace("nonsense", "UNKNOWN_COMMAND");
  std::set<Pair> there = kNever;
  for (const Row& row : kRows) {
    const auto [command, reply] = pair_of(row);
    EXPECT_FALSE(kNever.contains({command, reply})) << command << " -> " << reply;
    there.emplace(command, reply);
    const auto known = kDocumented.find(command);
    const bool is_documented = known != kDocumented.end() && known->second.contains(reply);
    EXPECT_TRUE(is_documented || kToAny.contains(reply) || command == "quit")
        << command << " -> " << reply;
  }
  for (const auto& [command, reply] : needed) {
    EXPECT_TRUE(there.contains({command, reply})) << "no row " << command << " -> " << reply;
  }
}

}  // namespace
}  // namespace detent::server
