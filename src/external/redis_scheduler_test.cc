// RedisScheduler with a real redis-server, and its errors when Redis refuses, is down or has
// settings that could lose tasks. redis_scheduler_crash_test.cc tests crashes.
#include "external/redis_scheduler.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "detent/check.h"
#include "external/redis_server_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

using test::RedisServer;

constexpr WallTime kStart{std::chrono::milliseconds{1'700'000'000'000}};

Task task_at(std::uint64_t id, std::chrono::milliseconds delay) {
  Task task;
  task.id = TaskId{id};
  task.queue = "q/1";
  task.payload = {Payload::Kind::bytes, std::string("\r\n\0$5\xff", 6) + std::to_string(id)};
  task.rules.max_attempts = 3;
  task.due_at = kStart + delay;
  task.created_at = kStart;
  return task;
}
TakeRequest until(std::chrono::milliseconds delay, std::size_t limit = 100) {
  return {.now = kStart, .until = kStart + delay, .limit = limit, .claim = 60s};
}
std::vector<TaskId> ids_of(const std::vector<Task>& tasks) {
  std::vector<TaskId> ids;
  ids.reserve(tasks.size());
  for (const Task& task : tasks) ids.push_back(task.id);
  return ids;
}
std::unique_ptr<RedisScheduler> open(RedisOptions options) {
  return RedisScheduler::create(std::move(options)).value();
}
/// A port of 127.0.0.1 that no other process can take. Nobody listens on it before listen().
class OtherPort {
 public:
  OtherPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    DETENT_CHECK(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    DETENT_CHECK(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = std::to_string(ntohs(address.sin_port));
  }
  ~OtherPort() { ::close(fd_); }
  bool listen() const { return ::listen(fd_, 1) == 0; }
  /// Accepts one connection, sends `words`, and reads until the other side closes.
  void speak_once(std::string_view words) const {
    const int peer = ::accept(fd_, nullptr, nullptr);
    ::send(peer, words.data(), words.size(), MSG_NOSIGNAL);
    ::shutdown(peer, SHUT_WR);
    std::array<char, 256> heard{};
    while (::recv(peer, heard.data(), heard.size(), 0) > 0) {
    }
    ::close(peer);
  }
  OtherPort(const OtherPort&) = delete;
  OtherPort& operator=(const OtherPort&) = delete;
  const std::string& port() const { return port_; }

 private:
  int fd_;
  std::string port_;
};

class RedisSchedulerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(server_.start(), "");
    redis_ = open(server_.options());
  }
  /// Sends a command to Redis over a second connection.
  RedisReply say(const std::vector<std::string>& words) {
    const std::vector<std::string_view> command(words.begin(), words.end());
    const auto connection =
        RedisConnection::open(parse_redis_address(server_.socket()).value(), {}).value();
    EXPECT_TRUE(connection->send(command));
    return connection->receive().value();
  }

  RedisServer server_;
  std::unique_ptr<RedisScheduler> redis_;
};

/// Without an address, a command would change another Redis on the machine of the operator.
TEST(RedisCommand, NamesTheServerTheUserAndTheDatabaseAndNoPassword) {
  RedisOptions options{.folder = "folder-1"};
  const auto command = [&options] {
    return RedisScheduler::create(options).value()->stamp_command(7);
  };
  EXPECT_EQ(command(), "redis-cli -h 127.0.0.1 -p 6379 SET '{detent:default}:generation' 7");
  options.address = "[::1]:6380";
  options.password = "secret";
  options.database = 3;
  EXPECT_EQ(command(),
            "redis-cli -h ::1 -p 6380 --askpass -n 3 SET '{detent:default}:generation' 7");
  options.address = "/run/o'clock";
  options.user = "me";
  EXPECT_EQ(command(), R"(redis-cli -s '/run/o'\''clock' --user 'me' --askpass -n 3 )"
                       "SET '{detent:default}:generation' 7");
}

TEST_F(RedisSchedulerTest, TakesDueTasksUnchangedAndEarliestFirst) {
  const std::array tasks{task_at(300, 2s), task_at(20, 1s), task_at(1'000, 1s), task_at(4, 3s)};
  ASSERT_TRUE(redis_->put(tasks));
  EXPECT_EQ(redis_->size().value(), 4U);
  const auto taken = redis_->take(until(2s));
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->tasks, (std::vector{tasks[1], tasks[2], tasks[0]}));
  EXPECT_TRUE(taken->damaged.empty());
}

TEST_F(RedisSchedulerTest, TakesNoMoreThanTheLimit) {
  const std::array tasks{task_at(1, 1s), task_at(2, 2s), task_at(3, 3s)};
  ASSERT_TRUE(redis_->put(tasks));
  EXPECT_EQ(ids_of(redis_->take(until(9s, 2))->tasks), (std::vector{TaskId{1}, TaskId{2}}));
  EXPECT_EQ(ids_of(redis_->take(until(9s, 2))->tasks), std::vector{TaskId{3}});
}

TEST_F(RedisSchedulerTest, AClaimedTaskIsTakenAgainAfterItsClaim) {
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s), task_at(2, 2s)}));
  EXPECT_EQ(redis_->take(until(9s))->tasks.size(), 2U);
  TakeRequest later = until(9s);
  later.now = kStart + 60s - 1ms;
  EXPECT_TRUE(redis_->take(later)->tasks.empty());
  later.now = kStart + 60s;
  EXPECT_EQ(ids_of(redis_->take(later)->tasks), (std::vector{TaskId{1}, TaskId{2}}));
  EXPECT_TRUE(redis_->take(later)->tasks.empty());
}

TEST_F(RedisSchedulerTest, AClaimMadeByAWrongClockDoesNotCount) {
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s)}));
  TakeRequest in_the_future = until(9s);
  in_the_future.now = kStart + 24h * 365;
  EXPECT_EQ(redis_->take(in_the_future)->tasks.size(), 1U);
  EXPECT_EQ(redis_->take(until(9s))->tasks.size(), 1U);
}

TEST_F(RedisSchedulerTest, ForgetRemovesTasksClaimedOrNot) {
  const std::array ids{TaskId{1}, TaskId{2}, TaskId{9}};
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s), task_at(2, 2s), task_at(3, 3s)}));
  ASSERT_EQ(redis_->take(until(1s))->tasks.size(), 1U);
  ASSERT_TRUE(redis_->forget(ids));
  ASSERT_TRUE(redis_->forget(ids));
  ASSERT_TRUE(redis_->forget({}));
  EXPECT_EQ(redis_->size().value(), 1U);
  TakeRequest later = until(9s);
  later.now += 1h;
  EXPECT_EQ(ids_of(redis_->take(later)->tasks), std::vector{TaskId{3}});
  ASSERT_TRUE(redis_->forget(std::array{TaskId{3}}));
  for (const std::string_view key : {"due", "records", "claims"}) {
    EXPECT_EQ(say({"EXISTS", "{detent:default}:" + std::string(key)}).integer, 0) << key;
  }
}

TEST_F(RedisSchedulerTest, CancelReportsTheOutcome) {
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s), task_at(2, 2s)}));
  ASSERT_EQ(redis_->take(until(1s))->tasks.size(), 1U);
  EXPECT_EQ(redis_->cancel(TaskId{1}).value(), CancelOutcome::being_handed_back);
  EXPECT_EQ(redis_->cancel(TaskId{2}).value(), CancelOutcome::cancelled);
  EXPECT_EQ(redis_->cancel(TaskId{2}).value(), CancelOutcome::not_there);
  EXPECT_EQ(redis_->size().value(), 1U);
  EXPECT_TRUE(redis_->take(until(9s))->tasks.empty());
}

TEST_F(RedisSchedulerTest, FindShowsATaskClaimedOrNot) {
  const Task task = task_at(1, 1s);
  ASSERT_TRUE(redis_->put(std::span(&task, 1)));
  EXPECT_EQ(redis_->find(TaskId{1}).value(), task);
  ASSERT_EQ(redis_->take(until(1s))->tasks.size(), 1U);
  EXPECT_EQ(redis_->find(TaskId{1}).value(), task);
  EXPECT_EQ(redis_->find(TaskId{2}).value(), std::nullopt);
}

TEST_F(RedisSchedulerTest, PuttingAgainReplacesTheTaskAndEndsItsClaim) {
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s)}));
  ASSERT_EQ(redis_->take(until(1s))->tasks.size(), 1U);
  const Task moved = task_at(1, 5s);
  ASSERT_TRUE(redis_->put(std::span(&moved, 1)));
  EXPECT_EQ(redis_->size().value(), 1U);
  EXPECT_TRUE(redis_->take(until(4s))->tasks.empty());
  EXPECT_EQ(redis_->take(until(5s))->tasks, std::vector{moved});
  ASSERT_TRUE(redis_->put(std::span(&moved, 1)));
  EXPECT_EQ(redis_->cancel(TaskId{1}).value(), CancelOutcome::cancelled);
}

TEST_F(RedisSchedulerTest, LargeBatchesGoInManyCallsAndArriveWhole) {
  std::vector<Task> tasks;
  for (std::uint64_t id = 1; id <= 1'000; ++id) {
    tasks.push_back(task_at(id << TaskId::kShardBits, std::chrono::milliseconds{id}));
    if (id % 50 == 0) tasks.back().payload.data.assign(kMaxPayloadBytes, 'x');
  }
  tasks.back().id = TaskId{TaskId::kEnd - 1};
  ASSERT_TRUE(redis_->put(tasks));
  ASSERT_TRUE(redis_->put({}));
  const auto taken = redis_->take(until(9s, tasks.size() + 1));
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_TRUE(taken->tasks == tasks);
  ASSERT_TRUE(redis_->forget(ids_of(tasks)));
  EXPECT_EQ(redis_->size().value(), 0U);
}

TEST_F(RedisSchedulerTest, ScriptsThatRedisHasDroppedAreLoadedAgain) {
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s)}));
  say({"SCRIPT", "FLUSH"});
  EXPECT_TRUE(redis_->put(std::array{task_at(2, 2s)}));
  say({"SCRIPT", "FLUSH"});
  EXPECT_EQ(redis_->cancel(TaskId{1}).value(), CancelOutcome::cancelled);
  say({"SCRIPT", "FLUSH"});
  EXPECT_EQ(redis_->take(until(9s))->tasks.size(), 1U);
  say({"SCRIPT", "FLUSH"});
  EXPECT_TRUE(redis_->forget(std::array{TaskId{2}}));
}

TEST_F(RedisSchedulerTest, AConnectionThatRedisClosedIsReplaced) {
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s)}));
  EXPECT_EQ(say({"CLIENT", "KILL", "TYPE", "normal"}).integer, 1);
  EXPECT_EQ(redis_->cancel(TaskId{1}).value(), CancelOutcome::cancelled);
}

TEST_F(RedisSchedulerTest, ALaterSessionTakesOverAndTheEarlierOneChangesNothing) {
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s)}));
  const auto other = open(server_.options());
  ASSERT_TRUE(other->put(std::array{task_at(2, 2s)}));
  const auto refused = redis_->forget(std::array{TaskId{1}, TaskId{2}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_NE(refused.error().message.find("another session has taken over"), std::string::npos);
  EXPECT_EQ(other->size().value(), 2U);
  EXPECT_TRUE(redis_->forget(std::array{TaskId{1}})) << "it takes over again";
  EXPECT_FALSE(other->put(std::array{task_at(3, 2s)}));
}

TEST_F(RedisSchedulerTest, NamesAndDatabasesKeepTasksApart) {
  RedisOptions named = server_.options();
  named.name = "other";
  RedisOptions numbered = server_.options();
  numbered.database = 3;
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s)}));
  EXPECT_EQ(open(named)->size().value(), 0U);
  EXPECT_EQ(open(numbered)->size().value(), 0U);
  EXPECT_EQ(redis_->size().value(), 1U);
  EXPECT_EQ(say({"HLEN", "{detent:default}:records"}).integer, 1);
}

TEST_F(RedisSchedulerTest, DamagedRecordsAreSetAsideAndOtherTasksAreTaken) {
  const std::array tasks{task_at(1, 1s), task_at(2, 2s), task_at(3, 3s), task_at(4, 4s)};
  ASSERT_TRUE(redis_->put(tasks));
  const std::string records = "{detent:default}:records";
  say({"HSET", records, "0000000000000001", "short"});
  std::string value = say({"HGET", records, "0000000000000003"}).text;
  say({"HSET", records, "0000000000000002", value});  // the record of another task
  value[0] = '1';
  say({"HSET", records, "0000000000000003", value});  // with another due time
  say({"HSET", records, "no id", "?"});
  say({"ZADD", "{detent:default}:due", "1", "no id"});
  EXPECT_EQ(redis_->find(TaskId{1}).error().code, ErrorCode::data_loss);
  const auto taken = redis_->take(until(9s));
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->tasks, std::vector{tasks[3]});
  ASSERT_EQ(taken->damaged.size(), 4U);
  for (const Error& error : taken->damaged) EXPECT_EQ(error.code, ErrorCode::data_loss);
  EXPECT_EQ(redis_->size().value(), 1U);
  EXPECT_EQ(say({"HGET", "{detent:default}:damaged", "0000000000000001"}).text, "short");
}

TEST_F(RedisSchedulerTest, ADamagedRecordWithAnExpiredClaimDoesNotBlockOthers) {
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s)}));
  ASSERT_EQ(redis_->take(until(9s))->tasks.size(), 1U);
  say({"HSET", "{detent:default}:records", "0000000000000001", "nan"});
  TakeRequest later = until(9s);
  later.now += 1h;
  const auto taken = redis_->take(later);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->damaged.size(), 1U);
}

TEST_F(RedisSchedulerTest, TakeAcceptsTimesOutsideTheRangeOfDueTimes) {
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s)}));
  TakeRequest odd = until(0s);
  odd.until = WallTime{-1s};
  EXPECT_TRUE(redis_->take(odd)->tasks.empty());
  odd.until = WallTime::max();
  EXPECT_EQ(redis_->take(odd)->tasks.size(), 1U);
}

TEST_F(RedisSchedulerTest, AFullRedisIsReportedAndKeepsItsTasks) {
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s)}));
  say({"CONFIG", "SET", "maxmemory", "1"});
  const auto full = redis_->put(std::array{task_at(2, 2s)});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(full.error().message.find("maxmemory"), std::string::npos);
  say({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(redis_->size().value(), 1U);
  EXPECT_TRUE(redis_->put(std::array{task_at(2, 2s)}));
}

TEST_F(RedisSchedulerTest, ARedisThatMayLoseTasksIsRefusedUnlessDurabilityIsAssumed) {
  const std::array<std::array<std::string_view, 3>, 3> settings{
      {{"appendfsync", "everysec", "always"},
       {"maxmemory-policy", "allkeys-lru", "noeviction"},
       {"appendonly", "no", "yes"}}};
  for (const auto& [name, bad, good] : settings) {
    say({"CONFIG", "SET", std::string(name), std::string(bad)});
    const auto refused = open(server_.options())->size();
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(refused.error().field, name);
    EXPECT_NE(refused.error().message.find("set it to '" + std::string(good)), std::string::npos);
    RedisOptions assumed = server_.options();
    assumed.durability = RedisDurability::assumed;
    EXPECT_TRUE(open(assumed)->size());
    say({"CONFIG", "SET", std::string(name), std::string(good)});
  }
}

TEST(RedisServerSettings, ARedisThatHidesItsSettingsIsRefusedUnlessDurabilityIsAssumed) {
  RedisServer server({"--rename-command", "CONFIG", ""});
  ASSERT_EQ(server.start(), "");
  RedisOptions options = server.options();
  const auto refused = open(options)->size();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find("CONFIG GET"), std::string::npos);
  options.durability = RedisDurability::assumed;
  EXPECT_TRUE(open(options)->size());
}

TEST(RedisServerSettings, ThePasswordIsSentAndAWrongOneIsReported) {
  RedisServer server(
      {"--requirepass", "secret", "--user", "detent", "on", ">hidden", "~*", "&*", "+@all"});
  ASSERT_EQ(server.start(), "");
  for (const auto& [user, password, is_right] : {std::tuple{"", "secret", true},
                                                 {"detent", "hidden", true},
                                                 {"detent", "secret", false},
                                                 {"limited", "hidden", false},
                                                 {"", "", false}}) {
    RedisOptions options = server.options();
    options.user = user;
    options.password = password;
    const auto answer = open(options)->size();
    EXPECT_EQ(answer.has_value(), is_right) << user << " " << password;
    if (is_right) continue;
    EXPECT_EQ(answer.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(answer.error().message.find("give the user and the password"), std::string::npos);
    EXPECT_EQ(answer.error().message.find("secret"), std::string::npos);
  }
}

TEST_F(RedisSchedulerTest, APasswordThatRedisDoesNotNeedIsReported) {
  RedisOptions options = server_.options();
  options.password = "secret";
  EXPECT_EQ(open(options)->size().error().code, ErrorCode::invalid_argument);
}

TEST_F(RedisSchedulerTest, AReplicaRefusesTasks) {
  ASSERT_TRUE(redis_->put(std::array{task_at(1, 1s)}));
  say({"REPLICAOF", "127.0.0.1", "1"});
  const auto refused = redis_->put(std::array{task_at(2, 2s)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_NE(refused.error().message.find("READONLY"), std::string::npos);
  say({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(redis_->put(std::array{task_at(2, 2s)}));
}

TEST(RedisServerSettings, ConnectsOverTcpToo) {
  // Another process can take the port before Redis does. In this case, try another port.
  for (int attempt = 0; attempt < 5; ++attempt) {
    const std::string port = OtherPort().port();
    RedisServer server({"--port", port, "--bind", "127.0.0.1"});
    const std::string problem = server.start();
    if (!problem.empty() && problem.find("in use") != std::string::npos) continue;
    ASSERT_EQ(problem, "");
    RedisOptions options = server.options();
    options.address = "localhost:" + port;
    const auto redis = open(options);
    ASSERT_TRUE(redis->put(std::array{task_at(1, 1s)}));
    EXPECT_EQ(redis->take(until(9s))->tasks.size(), 1U);
    return;
  }
  FAIL() << "no port was free";
}

TEST(RedisErrors, AFailedConnectionNamesTheAddressAndWhatToCheck) {
  const OtherPort silent;
  for (const std::string& address : {"127.0.0.1:" + silent.port(), std::string("/nowhere/redis")}) {
    const auto answer = open({.address = address, .folder = "f"})->put(std::array{task_at(1, 1s)});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
    EXPECT_NE(answer.error().message.find("put 1 tasks: redis at " + address + ": cannot connect"),
              std::string::npos)
        << answer.error().message;
    EXPECT_NE(answer.error().message.find("check that Redis is running"), std::string::npos);
  }
}

TEST(RedisErrors, AServerThatIsNotRedisIsReported) {
  for (const auto& [words, code, told] : {std::tuple{"HTTP/1.1 400 Bad Request\r\n\r\n",
                                                     ErrorCode::internal, "is not a Redis server"},
                                          {"", ErrorCode::unavailable, "connection lost"}}) {
    const OtherPort other;
    ASSERT_TRUE(other.listen());
    const Thread speaker([&other, text = words] { other.speak_once(text); });
    const auto answer = open({.address = "127.0.0.1:" + other.port(), .folder = "f"})->size();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, code);
    EXPECT_NE(answer.error().message.find(told), std::string::npos) << answer.error().message;
  }
}

TEST(RedisOptions, ErrorsNameTheWrongOption) {
  EXPECT_EQ(RedisScheduler::create({.address = "here"}).error().field, "address");
  EXPECT_EQ(RedisScheduler::create({.user = "me", .folder = "f"}).error().field, "password");
  EXPECT_EQ(RedisScheduler::create({.name = "a}b"}).error().field, "name");
  EXPECT_EQ(RedisScheduler::create({}).error().field, "folder");
  for (const RedisConnection::Timeouts timeouts :
       {RedisConnection::Timeouts{.connect = 0ms}, RedisConnection::Timeouts{.command = 0ms}}) {
    EXPECT_EQ(RedisScheduler::create({.folder = "f", .timeouts = timeouts}).error().field,
              "timeouts");
  }
}

TEST(RedisAddress, IsASocketOrHostAndPort) {
  EXPECT_EQ(parse_redis_address("/run/redis.sock")->socket_path, "/run/redis.sock");
  EXPECT_EQ(parse_redis_address("redis.example:6379")->host, "redis.example");
  EXPECT_EQ(parse_redis_address("redis.example:6379")->port, 6379);
  EXPECT_EQ(parse_redis_address("[::1]:1")->host, "::1");
  for (const std::string_view text :
       {"", "host", "host:", ":1", "[]:1", "host:0", "host:65536", "host:1x", "host:-1", "::1:1"}) {
    EXPECT_FALSE(parse_redis_address(text)) << text;
  }
}

}  // namespace
}  // namespace detent
