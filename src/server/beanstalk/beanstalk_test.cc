// The contract of the beanstalk commands whose replies depend on more than the state of one job.
// Also clients that misbehave: they must not affect other clients.
#include <algorithm>
#include <vector>

#include "server/testing/beanstalk_fixture.h"

namespace detent::server {
namespace {

using Beanstalk = BeanstalkTest;

// ---- put ----

TEST_F(Beanstalk, PutKeepsEveryByteOfABody) {
  BeanstalkClient client = connect();
  std::string body;
  for (int byte = 0; byte < 256; ++byte) body.push_back(static_cast<char>(byte));
  body += "\r\n\r\ndelete 1\r\n";
  const std::string id = client.put("0 0 60", body);
  EXPECT_EQ(client.ask("reserve"),
            "RESERVED " + id + " " + std::to_string(body.size()) + "\n" + body);
  client.put("0 0 60", "");
  EXPECT_TRUE(client.ask("reserve").ends_with(" 0\n"));
}

TEST_F(Beanstalk, PutRefusesTooLargeOrUnterminatedBodiesAndContinues) {
  BeanstalkClient client = connect();
  client.put("0 0 60", std::string(65'535, 'x'));
  EXPECT_EQ(client.ask("put 0 0 60 65536\r\n" + std::string(65'536, 'x')), "JOB_TOO_BIG");
  EXPECT_EQ(client.ask("put 0 0 60 3\r\nabcde"), "EXPECTED_CRLF");
  EXPECT_EQ(client.read(), "UNKNOWN_COMMAND") << "the end of the line is left";
  EXPECT_EQ(client.field("stats", "cmd-put"), "3");
  EXPECT_EQ(client.field("stats", "total-jobs"), "1");
}

TEST_F(Beanstalk, APageInABrowserCanSendNoCommands) {
  BeanstalkClient page = connect();
  page.send("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nput 0 0 60 2\r\nhi");
  EXPECT_EQ(page.read(), "<end>") << "the connection is closed";
  EXPECT_EQ(connect().field("stats", "total-jobs"), "0");
}

TEST_F(Beanstalk, PutOverAQuotaIsOutOfMemory) {
  BeanstalkClient client = connect();
  ASSERT_EQ(send("PATCH", "/v1/queues/default", R"({"max_tasks":1})").status, 200);
  client.put();
  EXPECT_EQ(client.ask("put 0 0 60 1\r\nx"), "OUT_OF_MEMORY");
}

TEST_F(Beanstalk, ANearlyFullDiskRefusesPutsOnly) {
  BeanstalkClient client = connect();
  const std::string id = client.put();
  intake_.close({ErrorCode::unavailable, "the disk is nearly full", ""});
  EXPECT_EQ(client.ask("put 0 0 60 1\r\nx"), "DRAINING");
  EXPECT_EQ(client.ask("reserve"), "RESERVED " + id + " 4\nbody");
  EXPECT_EQ(client.ask("delete " + id), "DELETED");
}

TEST_F(Beanstalk, DrainingRefusesPutsOnly) {
  BeanstalkClient client = connect();
  const std::string id = client.put();
  beanstalk_->drain();
  EXPECT_EQ(client.ask("put 0 0 60 1\r\nx"), "DRAINING");
  EXPECT_EQ(client.field("stats", "draining"), "true");
  EXPECT_EQ(client.ask("reserve"), "RESERVED " + id + " 4\nbody");
  EXPECT_EQ(client.ask("delete " + id), "DELETED");
}

TEST_F(Beanstalk, ATimeToRunIsAtLeastASecondAndAtMostThirtyDays) {
  BeanstalkClient client = connect();
  EXPECT_EQ(client.field("stats-job " + client.put("0 0 0"), "ttr"), "1");
  EXPECT_EQ(client.field("stats-job " + client.put("0 0 4294967295"), "ttr"), "2592000");
}

// ---- reserve ----

TEST_F(Beanstalk, ReserveTakesTheMostUrgentOfAllWatchedQueues) {
  BeanstalkClient client = connect();
  client.ask("watch a");
  client.ask("watch b");
  std::vector<std::string> ids;
  for (const char* const where : {"a 5", "b 3", "default 4", "b 9", "a 3"}) {
    const std::string place = where;
    client.ask("use " + place.substr(0, place.find(' ')));
    ids.push_back(client.put(place.substr(place.find(' ') + 1) + " 0 60"));
  }
  for (const std::size_t expected : {1u, 4u, 2u, 0u, 3u}) {
    EXPECT_EQ(client.ask("reserve-with-timeout 0"), "RESERVED " + ids[expected] + " 4\nbody");
  }
  EXPECT_EQ(client.ask("reserve-with-timeout 0"), "TIMED_OUT");
}

TEST_F(Beanstalk, ReserveWaitsForTheFirstTaskOfAnyWatchedQueue) {
  BeanstalkClient worker = connect();
  BeanstalkClient producer = connect();
  worker.ask("watch a");
  worker.ask("watch never-used");
  worker.send("reserve");
  await_waiting(producer, "1");
  EXPECT_EQ(producer.field("stats-tube a", "current-waiting"), "1");
  producer.ask("use a");
  const std::string id = producer.put();
  EXPECT_EQ(worker.read(), "RESERVED " + id + " 4\nbody");
  EXPECT_EQ(producer.field("stats", "current-waiting"), "0");
  EXPECT_EQ(producer.field("stats-tube default", "current-waiting"), "0");
  producer.put();
  EXPECT_EQ(producer.field("stats", "current-jobs-ready"), "1") << "it waited for one only";
}

TEST_F(Beanstalk, TheClientThatWaitedLongestIsServedFirst) {
  BeanstalkClient first = connect();
  BeanstalkClient second = connect();
  BeanstalkClient producer = connect();
  first.ask("watch a");
  first.send("reserve");
  await_waiting(producer, "1");
  second.send("reserve");
  await_waiting(producer, "2");
  const std::string a = producer.put();
  EXPECT_EQ(first.read(), "RESERVED " + a + " 4\nbody");
  const std::string b = producer.put();
  EXPECT_EQ(second.read(), "RESERVED " + b + " 4\nbody");
}

TEST_F(Beanstalk, ReserveWithTimeoutEndsWithTheTimeout) {
  BeanstalkClient worker = connect();
  BeanstalkClient asker = connect();
  worker.send("reserve-with-timeout 5");
  await_waiting(asker, "1");
  advance(4'999ms);
  EXPECT_EQ(asker.field("stats", "current-waiting"), "1");
  advance(1ms);
  EXPECT_EQ(worker.read(), "TIMED_OUT");
}

TEST_F(Beanstalk, ADelayedJobIsHandedOutWhenItIsDue) {
  BeanstalkClient worker = connect();
  BeanstalkClient producer = connect();
  const std::string id = producer.put("0 3 60");
  worker.send("reserve");
  await_waiting(producer, "1");
  advance(3s);
  EXPECT_EQ(worker.read(), "RESERVED " + id + " 4\nbody");
  EXPECT_EQ(producer.field("stats-job " + id, "delay"), "3");
}

TEST_F(Beanstalk, AClientThatEndsItsSideWhileItWaitsIsToldThatTimeIsOver) {
  BeanstalkClient worker = connect();
  BeanstalkClient asker = connect();
  worker.send("reserve");
  await_waiting(asker, "1");
  worker.socket().shut_down_sending();
  EXPECT_EQ(worker.read(), "TIMED_OUT");
  EXPECT_EQ(worker.read(), "<end>");
  asker.put();
  EXPECT_EQ(asker.field("stats", "current-jobs-ready"), "1");
}

// ---- time to run ----

TEST_F(Beanstalk, TheLastSecondOfATimeToRunEndsAWait) {
  BeanstalkClient worker = connect();
  BeanstalkClient asker = connect();
  const std::string id = worker.put("0 0 10");
  worker.ask("reserve");
  worker.send("reserve");
  await_waiting(asker, "1");
  advance(8'999ms);
  EXPECT_EQ(asker.field("stats", "current-waiting"), "1");
  advance(1ms);
  EXPECT_EQ(worker.read(), "DEADLINE_SOON");
  EXPECT_EQ(worker.ask("reserve-with-timeout 0"), "DEADLINE_SOON");
  const std::string other = asker.put();
  EXPECT_EQ(worker.ask("reserve"), "RESERVED " + other + " 4\nbody") << "there is one to be had";
  EXPECT_EQ(worker.ask("touch " + id), "TOUCHED");
  EXPECT_EQ(worker.field("stats-job " + id, "time-left"), "10");
  EXPECT_EQ(worker.ask("reserve-with-timeout 0"), "TIMED_OUT");
}

TEST_F(Beanstalk, ATimeToRunThatIsOverMakesTheJobReadyForeverAndNeverDead) {
  BeanstalkClient worker = connect();
  BeanstalkClient other = connect();
  const std::string id = worker.put("3 0 1");
  for (int timeouts = 1; timeouts <= 30; ++timeouts) {
    ASSERT_EQ(worker.ask("reserve-with-timeout 0"), "RESERVED " + id + " 4\nbody");
    advance(1s);
    ASSERT_EQ(other.state_of(id), "ready");
    ASSERT_EQ(other.field("stats-job " + id, "timeouts"), std::to_string(timeouts));
  }
  EXPECT_EQ(other.field("stats-job " + id, "reserves"), "30");
  EXPECT_EQ(other.field("stats", "job-timeouts"), "30");
  EXPECT_EQ(worker.ask("release " + id + " 0 0"), "NOT_FOUND");
  EXPECT_EQ(worker.ask("touch " + id), "NOT_FOUND");
  EXPECT_EQ(worker.ask("delete " + id), "DELETED") << "as anybody may delete a ready job";
}

TEST_F(Beanstalk, AClosedConnectionGivesBackWhatItHolds) {
  BeanstalkClient other = connect();
  std::string id;
  {
    BeanstalkClient worker = connect();
    id = worker.put("0 0 600");
    worker.put("0 0 600");
    worker.ask("reserve");
    worker.ask("reserve");
    EXPECT_EQ(other.field("stats", "current-jobs-reserved"), "2");
    EXPECT_EQ(other.field("stats", "current-workers"), "1");
  }
  while (other.field("stats", "current-connections") != "1") {
  }
  EXPECT_EQ(other.ask("reserve-with-timeout 0"), "RESERVED " + id + " 4\nbody");
  EXPECT_EQ(other.field("stats-job " + id, "reserves"), "2");
  EXPECT_EQ(other.field("stats-job " + id, "releases"), "0") << "nobody released it";
}

// ---- release, bury, kick ----

TEST_F(Beanstalk, ReleaseAndBurySetThePriorityAndCount) {
  BeanstalkClient client = connect();
  const std::string id = client.put("7 0 60");
  client.ask("reserve");
  EXPECT_EQ(client.ask("release " + id + " 6 0"), "RELEASED");
  EXPECT_EQ(client.field("stats-job " + id, "pri"), "6");
  client.ask("reserve");
  EXPECT_EQ(client.ask("release " + id + " 5 4"), "RELEASED");
  EXPECT_EQ(client.field("stats-job " + id, "delay"), "4");
  advance(4s);
  client.ask("reserve");
  EXPECT_EQ(client.ask("bury " + id + " 4"), "BURIED");
  EXPECT_EQ(client.field("stats-job " + id, "pri"), "4");
  EXPECT_EQ(client.ask("kick 1"), "KICKED 1");
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"reserves", "3"}, {"releases", "2"}, {"buries", "1"}, {"kicks", "1"}, {"pri", "4"}}) {
    EXPECT_EQ(client.field("stats-job " + id, key), value) << key;
  }
}

TEST_F(Beanstalk, KickTakesBuriedJobsFirstAndInTheOrderOfTheirBurial) {
  BeanstalkClient client = connect();
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(client.put());
  const std::string delayed = client.put("0 30 60");
  for (const std::size_t i : {2u, 0u, 1u}) {
    client.ask("reserve-job " + ids[i]);
    client.ask("bury " + ids[i] + " 1024");
    advance(1ms);
  }
  EXPECT_EQ(client.ask("peek-buried"), "FOUND " + ids[2] + " 4\nbody");
  EXPECT_EQ(client.ask("kick 2"), "KICKED 2");
  EXPECT_EQ(client.ask("peek-buried"), "FOUND " + ids[1] + " 4\nbody");
  EXPECT_EQ(client.ask("kick 10"), "KICKED 1") << "not the delayed one, while any is buried";
  EXPECT_EQ(client.state_of(delayed), "delayed");
  EXPECT_EQ(client.ask("kick 10"), "KICKED 1");
  EXPECT_EQ(client.state_of(delayed), "ready");
}

// As in beanstalkd, only `kick` and `kick-job` count as kicks.
TEST_F(Beanstalk, ReserveJobIsNotCountedAsAKick) {
  BeanstalkClient client = connect();
  const std::string delayed = client.put("0 30 60");
  client.ask("reserve-job " + delayed);
  EXPECT_EQ(client.field("stats-job " + delayed, "kicks"), "0");
  client.ask("bury " + delayed + " 0");
  client.ask("reserve-job " + delayed);
  EXPECT_EQ(client.field("stats-job " + delayed, "kicks"), "0");
  EXPECT_EQ(client.field("stats-job " + delayed, "buries"), "1");
}

TEST_F(Beanstalk, KickAndPeekReachAsFarAsThereAreTasks) {
  BeanstalkClient client = connect();
  client.ask("use near");
  constexpr int kMany = 2'500;
  std::string puts;
  for (int i = 0; i < kMany; ++i) puts += "put 0 100 60 1\r\nx\r\n";
  puts.resize(puts.size() - 2);
  client.send(puts);
  for (int i = 0; i < kMany; ++i) ASSERT_TRUE(client.read().starts_with("INSERTED "));
  client.ask("use far");
  const std::string id = client.put("0 200 60");
  EXPECT_EQ(client.ask("peek-delayed"), "FOUND " + id + " 4\nbody") << "behind those of others";
  EXPECT_EQ(client.ask("kick 5"), "KICKED 1");
  client.ask("use near");
  EXPECT_EQ(client.ask("kick 2000"), "KICKED 2000");
  EXPECT_EQ(client.ask("kick 2000"), "KICKED 500");
  EXPECT_EQ(client.field("stats-tube near", "current-jobs-ready"), "2500");
}

// ---- tubes ----

TEST_F(Beanstalk, QueuesAreUsedWatchedAndListed) {
  BeanstalkClient client = connect();
  EXPECT_EQ(client.ask("list-tube-used"), "USING default");
  EXPECT_EQ(client.ask("list-tubes-watched"), "OK 14\n---\n- default\n");
  EXPECT_EQ(client.ask("ignore default"), "NOT_IGNORED");
  EXPECT_EQ(client.ask("ignore nothing"), "WATCHING 1");
  EXPECT_EQ(client.ask("watch true"), "WATCHING 2");
  EXPECT_EQ(client.ask("watch true"), "WATCHING 2");
  EXPECT_EQ(client.ask("use 123"), "USING 123");
  EXPECT_EQ(client.ask("list-tubes"), "OK 31\n---\n- \"123\"\n- default\n- \"true\"\n");
  EXPECT_EQ(client.field("stats-tube 123", "current-using"), "1");
  EXPECT_EQ(client.field("stats-tube true", "current-watching"), "1");
  EXPECT_EQ(client.ask("ignore default"), "WATCHING 1");
  EXPECT_EQ(client.ask("ignore true"), "NOT_IGNORED");
  EXPECT_EQ(client.ask("list-tubes-watched"), "OK 13\n---\n- \"true\"\n");
  EXPECT_EQ(client.ask("use default"), "USING default");
  EXPECT_EQ(client.ask("stats-tube 123"), "NOT_FOUND") << "empty, and used by nobody";
  EXPECT_EQ(client.ask("pause-tube 123 1"), "NOT_FOUND");
  EXPECT_EQ(client.field("stats", "current-tubes"), "2");
}

TEST_F(Beanstalk, AClientWatchesAThousandQueuesAtMost) {
  BeanstalkClient client = connect();
  std::string watches;
  for (int i = 2; i <= 1'001; ++i) watches += "watch q" + std::to_string(i) + "\r\n";
  watches.resize(watches.size() - 2);
  client.send(watches);
  for (int i = 2; i <= 1'000; ++i) ASSERT_EQ(client.read(), "WATCHING " + std::to_string(i));
  EXPECT_EQ(client.read(), "OUT_OF_MEMORY");
  EXPECT_EQ(client.ask("watch q2"), "WATCHING 1000");
  client.ask("use q1000");
  const std::string id = client.put();
  EXPECT_EQ(client.ask("reserve"), "RESERVED " + id + " 4\nbody");
  EXPECT_EQ(client.ask("ignore q500"), "WATCHING 999");
}

TEST_F(Beanstalk, APausedQueueHandsOutNothingUntilThePauseIsOver) {
  BeanstalkClient worker = connect();
  BeanstalkClient client = connect();
  const std::string id = client.put();
  EXPECT_EQ(client.ask("pause-tube default 10"), "PAUSED");
  EXPECT_EQ(worker.ask("reserve-with-timeout 0"), "TIMED_OUT");
  EXPECT_EQ(client.ask("peek-ready"), "FOUND " + id + " 4\nbody");
  worker.send("reserve");
  await_waiting(client, "1");
  advance(4s);
  EXPECT_EQ(client.field("stats-tube default", "pause"), "10");
  EXPECT_EQ(client.field("stats-tube default", "pause-time-left"), "6");
  EXPECT_EQ(client.field("stats", "current-waiting"), "1");
  advance(6s);
  EXPECT_EQ(worker.read(), "RESERVED " + id + " 4\nbody");
  EXPECT_EQ(client.field("stats-tube default", "pause"), "0");
  EXPECT_EQ(client.field("stats-tube default", "cmd-pause-tube"), "1");
  client.ask("pause-tube default 100");
  const std::string next = client.put();
  worker.send("reserve");
  await_waiting(client, "1");
  EXPECT_EQ(client.ask("pause-tube default 0"), "PAUSED");
  EXPECT_EQ(worker.read(), "RESERVED " + next + " 4\nbody") << "0 ends the pause";
}

TEST_F(Beanstalk, StatsCountJobsByState) {
  BeanstalkClient client = connect();
  client.ask("use a");
  client.put("1023 0 60");
  client.put("1024 0 60");
  client.put("0 60 60");
  for (const char* const command : {"stats", "stats-tube a"}) {
    EXPECT_EQ(client.field(command, "current-jobs-urgent"), "1");
    EXPECT_EQ(client.field(command, "current-jobs-ready"), "2");
    EXPECT_EQ(client.field(command, "current-jobs-delayed"), "1");
    EXPECT_EQ(client.field(command, "total-jobs"), "3");
  }
  client.ask("watch a");
  client.ask("reserve");
  EXPECT_EQ(client.field("stats", "current-jobs-urgent"), "0");
  advance(2s);
  const std::string stats = client.ask("stats");
  for (const char* const line :
       {"cmd-put: 3", "cmd-use: 1", "cmd-watch: 1", "cmd-reserve: 1", "cmd-stats: 6",
        "cmd-stats-tube: 4", "current-connections: 1", "total-connections: 1",
        "current-producers: 1", "current-workers: 1", "max-job-size: 65535", "uptime: 2",
        "draining: false", "current-jobs-reserved: 1", "current-tubes: 2"}) {
    EXPECT_NE(stats.find("\n" + std::string(line) + "\n"), std::string::npos) << line << stats;
  }
}

// ---- HTTP and beanstalk together ----

TEST_F(Beanstalk, ATaskIsTheSameOverBothProtocols) {
  BeanstalkClient client = connect();
  client.ask("watch mail");
  const std::string scheduled = schedule(R"({"queue":"mail","payload":{"a":1}})");
  EXPECT_EQ(client.ask("reserve"), "RESERVED " + scheduled + " 7\n{\"a\":1}");
  EXPECT_NE(send("GET", "/v1/tasks/" + scheduled).body.find(R"("state":"leased")"),
            std::string::npos);
  EXPECT_EQ(client.field("stats-job " + scheduled, "ttr"), "60");
  EXPECT_EQ(client.ask("bury " + scheduled + " 0"), "BURIED");
  EXPECT_NE(send("GET", "/v1/tasks/" + scheduled).body.find(R"("state":"dead")"),
            std::string::npos);
  const std::string put = client.put("5 0 60", "\xFF");
  const auto leased = lease("default");
  ASSERT_EQ(leased.size(), 1u);
  EXPECT_EQ(client.state_of(put), "reserved");
  EXPECT_EQ(client.ask("delete " + put), "NOT_FOUND") << "another has it";
  send("POST", "/v1/queues/default/pause");
  EXPECT_EQ(client.field("stats-tube default", "pause"), "4294967295");
}

// ---- clients of all kinds ----

TEST_F(Beanstalk, CommandsSentAheadAreAnsweredInTheirOrder) {
  BeanstalkClient client = connect();
  BeanstalkClient other = connect();
  client.send("put 0 0 60 1\r\na\r\nreserve\r\nlist-tube-used\r\nreserve\r\nuse x\r\nnonsense");
  const std::string inserted = client.read();
  const std::string id = inserted.substr(inserted.find(' ') + 1);
  EXPECT_EQ(client.read(), "RESERVED " + id + " 1\na");
  EXPECT_EQ(client.read(), "USING default");
  await_waiting(other, "1");
  const std::string next = other.put();
  EXPECT_EQ(client.read(), "RESERVED " + next + " 4\nbody");
  EXPECT_EQ(client.read(), "USING x");
  EXPECT_EQ(client.read(), "UNKNOWN_COMMAND");
  client.send("stats\r\nlist-tubes\r\nuse y");
  EXPECT_TRUE(client.read().starts_with("OK "));
  EXPECT_TRUE(client.read().starts_with("OK "));
  EXPECT_EQ(client.read(), "USING y");
  client.send("stats-tube y\r\nquit\r\nstats");
  EXPECT_TRUE(client.read().starts_with("OK "));
  EXPECT_EQ(client.read(), "<end>");
}

TEST_F(Beanstalk, AClientThatReadsNoRepliesDelaysNoOtherClientAndUsesLittleMemory) {
  BeanstalkClient slow(beanstalk_->port());
  const std::string id = slow.put("0 0 60", std::string(65'000, 'x'));
  std::string many;
  for (int i = 0; i < 2'000; ++i) many += "peek " + id + "\r\n";
  ASSERT_TRUE(slow.socket().send(many));
  BeanstalkClient other = connect();
  for (int i = 0; i < 50; ++i) other.put();
  EXPECT_EQ(other.field("stats", "current-connections"), "2");
  // When the client reads again, it gets all replies.
  for (int i = 0; i < 2'000; ++i) {
    ASSERT_EQ(slow.read().size(), 65'000 + std::string("FOUND " + id + " 65000\n").size());
  }
}

TEST_F(Beanstalk, ManyPutsSentAheadShareTheirCommits) {
  BeanstalkClient client = connect();
  constexpr int kMany = 5'000;
  std::string puts;
  for (int i = 0; i < kMany; ++i) puts += "put 0 0 60 1\r\nx\r\n";
  puts.resize(puts.size() - 2);
  client.send(puts);
  for (int i = 0; i < kMany; ++i) ASSERT_TRUE(client.read().starts_with("INSERTED "));
  EXPECT_EQ(client.field("stats", "current-jobs-ready"), std::to_string(kMany));
}

TEST_F(Beanstalk, ACommandThatDripsInIsCutAMinuteAfterItBegan) {
  BeanstalkClient slow = connect();
  BeanstalkClient other = connect();  // its replies show that the server has read the sent bytes
  ASSERT_TRUE(slow.socket().send("put 0 0 60 600\r\n"));
  int bytes = 0;
  while (bytes < 600 && !slow.socket().has_input() && slow.socket().send("x")) {
    EXPECT_EQ(other.ask("list-tube-used"), "USING default");
    clock_.advance(1s);
    ++bytes;
  }
  EXPECT_LT(bytes, 600) << "though each byte came within a second";
  slow.socket().send("\r\n");  // ends the line, in case the server has not cut the connection
  EXPECT_EQ(slow.socket().read(1), "");
}

}  // namespace
}  // namespace detent::server
