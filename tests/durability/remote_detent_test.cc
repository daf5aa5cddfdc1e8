// A second detent server, as a process, keeps far tasks. First, single operations are tested. Then
// two servers are killed with kill -9 in turn, while tasks move from one to the other and back.
// Time is real.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/testing/test_folder.h"
#include "base/wall_time.h"
#include "external/far_tasks.h"
#include "external/far_tasks_rig.h"
#include "external/remote_detent_scheduler.h"
#include "store/record_format.h"
#include "tests/durability/child_server.h"
#include "tests/support/client_of.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using std::chrono::milliseconds;
namespace fs = std::filesystem;

class RemoteVerbs : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.start());
    remote_ = open();
  }
  std::unique_ptr<RemoteDetentScheduler> open(const std::string& folder = "first") const {
    return RemoteDetentScheduler::create(
               {.url = server_.url(), .queue = "far", .folder = folder, .lead = 1h})
        .value();
  }
  Client client() const { return test::client_of(server_.url()); }
  Task task(std::uint64_t id, milliseconds delay) const {
    Task made;
    made.id = TaskId{id};
    made.queue = "q/1";
    made.payload = {Payload::Kind::bytes, std::string("\r\n\0\xff", 4) + std::to_string(id)};
    made.rules.max_attempts = 3;
    made.due_at = now() + delay;
    made.created_at = now();
    return made;
  }
  WallTime now() const { return ceil_to_ms(clock_.wall_now()); }
  Result<void> put(const Task& one) { return remote_->put(std::span(&one, 1)); }
  Result<void> forget(TaskId id) { return remote_->forget(std::span(&id, 1)); }
  /// Calls take() until there is a task. The other server makes due tasks ready a moment later.
  std::vector<Task> take(RemoteDetentScheduler& remote, milliseconds claim = 1h) {
    while (true) {
      Taken taken =
          remote.take({.now = now(), .until = now() + 1h, .limit = 100, .claim = claim}).value();
      if (!taken.tasks.empty()) return std::move(taken.tasks);
    }
  }
  bool is_empty() { return remote_->size().value() == 0; }

  SystemClock clock_;
  TestFolder folder_;
  ChildServer server_{{.program = DETENT_BINARY, .data = folder_ / "data"}};
  std::unique_ptr<RemoteDetentScheduler> remote_;
};

TEST_F(RemoteVerbs, WhatIsPutIsFoundAsItWasAndOnlyWhatIsNearIsTaken) {
  const std::array tasks{task(513, 59min), task(258, 30min), task(771, 2h)};
  ASSERT_TRUE(remote_->put(tasks));
  EXPECT_EQ(remote_->size().value(), 3U);
  for (const Task& one : tasks) EXPECT_EQ(remote_->find(one.id).value(), one);
  EXPECT_EQ(remote_->find(TaskId{5}).value(), std::nullopt);
  std::vector<Task> taken = take(*remote_);
  while (taken.size() < 2) taken.push_back(take(*remote_).front());
  std::ranges::sort(taken, {}, &Task::due_at);
  EXPECT_EQ(taken, (std::vector{tasks[1], tasks[0]}));
  EXPECT_TRUE(remote_->take({.now = now(), .until = now() + 1h, .limit = 9}).value().tasks.empty());
  EXPECT_EQ(remote_->find(TaskId{513}).value(), tasks[0]) << "a claimed one too";
  const std::array ids{TaskId{513}, TaskId{258}, TaskId{771}, TaskId{5}};
  ASSERT_TRUE(remote_->forget(ids));
  ASSERT_TRUE(remote_->forget(ids)) << "again";
  EXPECT_TRUE(is_empty());
}

TEST_F(RemoteVerbs, ATaskThatWasForgottenOrCancelledMayBePutAgainAsItWas) {
  const Task far = task(513, 2h);
  const Task near = task(514, 1min);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(put(far));
    ASSERT_TRUE(put(near));
    EXPECT_EQ(take(*remote_), std::vector{near});
    EXPECT_EQ(remote_->cancel(near.id).value(), CancelOutcome::being_handed_back);
    ASSERT_TRUE(forget(near.id));
    EXPECT_EQ(remote_->cancel(near.id).value(), CancelOutcome::not_there);
    EXPECT_EQ(remote_->cancel(far.id).value(), CancelOutcome::cancelled);
    EXPECT_EQ(remote_->cancel(far.id).value(), CancelOutcome::not_there);
    EXPECT_TRUE(is_empty());
  }
}

TEST_F(RemoteVerbs, PutReplacesWhatLiesThereAndEndsItsClaim) {
  Task near = task(513, 1min);
  ASSERT_TRUE(put(near));
  const std::uint64_t first = client().get(client::TaskKey{"far", "513"}).value().id;
  ASSERT_TRUE(put(near));
  EXPECT_NE(client().get(client::TaskKey{"far", "513"}).value().id, first)
      << "a removal of the first may be on its way";
  ASSERT_EQ(take(*remote_).size(), 1U);
  ASSERT_TRUE(put(near));
  EXPECT_EQ(take(*remote_), std::vector{near});
  near.attempts = 1;
  ASSERT_TRUE(put(near));
  EXPECT_EQ(remote_->find(near.id).value(), near);
  EXPECT_EQ(remote_->size().value(), 1U);
}

TEST_F(RemoteVerbs, WhatWasClaimedBeforeACrashIsFreeOnceTheClaimHasRunOut) {
  const Task near = task(513, 1min);
  ASSERT_TRUE(put(near));
  ASSERT_EQ(take(*open(), 2s),
            std::vector{near});  // the scheduler object ends, and its claim token is lost
  const Result<void> claimed = forget(near.id);
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ErrorCode::unavailable);
  EXPECT_NE(claimed.error().message.find("task 513 is still leased there"), std::string::npos);
  EXPECT_EQ(put(near).error().code, ErrorCode::unavailable);
  EXPECT_EQ(remote_->cancel(near.id).value(), CancelOutcome::being_handed_back);
  EXPECT_EQ(take(*remote_), std::vector{near});
  ASSERT_TRUE(forget(near.id));
  EXPECT_TRUE(is_empty());
}

TEST_F(RemoteVerbs, AClaimThatHasRunOutDoesNotKeepATaskFromBeingForgotten) {
  const Task near = task(513, 1min);
  ASSERT_TRUE(put(near));
  ASSERT_EQ(take(*remote_, 1ms), std::vector{near});
  while (client().get(client::TaskKey{"far", "513"}).value().state == client::TaskState::leased) {
  }
  ASSERT_TRUE(forget(near.id));
  EXPECT_TRUE(is_empty());
}

TEST_F(RemoteVerbs, ARecordThatCannotBeReadIsSetAsideRaw) {
  ASSERT_TRUE(put(task(513, 2h)));
  std::string record = encode_record(task(7, 1min));
  record[3] = static_cast<char>(record[3] ^ 1);
  const client::Payload payload{client::Payload::Kind::bytes, record};
  ASSERT_TRUE(client().schedule({.queue = "far", .payload = payload, .key = "7"}));
  ASSERT_TRUE(client().schedule({.queue = "far", .payload = payload, .key = "x"}));
  std::size_t damaged = 0;
  while (damaged < 2) {
    const Taken taken = remote_->take({.now = now(), .until = now() + 1h, .limit = 9}).value();
    EXPECT_TRUE(taken.tasks.empty());
    for (const Error& error : taken.damaged) EXPECT_EQ(error.code, ErrorCode::data_loss);
    damaged += taken.damaged.size();
  }
  EXPECT_EQ(remote_->size().value(), 1U) << "the others are gone from there";
  const auto aside = client().lease("far.damaged", {.max = 9, .wait = 1s}).value();
  ASSERT_FALSE(aside.empty());
  EXPECT_EQ(aside.front().payload, payload);
}

TEST_F(RemoteVerbs, AQueueThatKeepsTasksOfAnotherFolderIsRefusedAndWhatToDoIsSaid) {
  const Task far = task(513, 2h);
  ASSERT_TRUE(put(far));
  const auto second = open("second");
  const std::array ids{far.id};
  for (const Error& error :
       {second->put(std::span(&far, 1)).error(), second->find(far.id).error(),
        second->cancel(far.id).error(), second->forget(ids).error(), second->size().error(),
        second->take({.now = now(), .until = now() + 3h}).error()}) {
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
    EXPECT_NE(error.message.find("another data folder"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("?queue=NAME"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("detent purge far --server " + server_.url() +
                                 " && detent cancel --queue far.folder --key folder --server " +
                                 server_.url()),
              std::string::npos)
        << error.message;
  }
  EXPECT_EQ(open("first")->find(far.id).value(), far) << "and of the same one is taken up";
  EXPECT_EQ(open("first")->size().value(), 1U);

  ASSERT_TRUE(client().purge("far"));
  ASSERT_TRUE(client().cancel(client::TaskKey{"far.folder", "folder"}));
  EXPECT_TRUE(second->put(std::span(&far, 1)));
  EXPECT_EQ(open("first")->size().error().code, ErrorCode::invalid_argument);
}

TEST_F(RemoteVerbs, TasksWhoseFolderWasRemovedAreOfWhoComesFirst) {
  const Task far = task(513, 2h);
  ASSERT_TRUE(put(far));
  ASSERT_TRUE(client().cancel(client::TaskKey{"far.folder", "folder"}));
  EXPECT_EQ(open("second")->find(far.id).value(), far);
  EXPECT_EQ(open("first")->find(far.id).error().code, ErrorCode::invalid_argument);
}

TEST_F(RemoteVerbs, TasksAreThereAfterAKill) {
  const Task far = task(513, 2h);
  ASSERT_TRUE(put(far));
  server_.kill();
  EXPECT_EQ(remote_->find(far.id).error().code, ErrorCode::unavailable);
  ASSERT_TRUE(server_.start());
  EXPECT_EQ(remote_->find(far.id).value(), far);
}

/// Runs steps of FarTasks with a server whose data is replaced by an older state, or removed.
class RemoteLoss : public RemoteVerbs {
 protected:
  void SetUp() override {
    RemoteVerbs::SetUp();
    for (const Task& one : {kept_, cancelled_}) local_.tasks.emplace(one.id, one);
    step();
    ASSERT_TRUE(local_.tasks.empty()) << "both are there";
  }
  /// Makes steps until one has no connection error.
  void step() {
    do {
      far_.emplace(local_, *remote_, clock_, FarTasksOptions{}, 1);
      far_->step();
    } while (far_->stats().errors > 0);
  }
  template <class Change>
  void change_data(Change change) {
    server_.kill();
    change();
    ASSERT_TRUE(server_.start());
  }
  void back_up() {
    change_data([this] { fs::copy(folder_ / "data", folder_ / "backup", kAll); });
  }
  void put_backup_back() {
    change_data([this] {
      fs::remove_all(folder_ / "data");
      fs::copy(folder_ / "backup", folder_ / "data", kAll);
    });
  }

  static constexpr auto kAll = fs::copy_options::recursive;
  const Task kept_ = task(513, 5h);
  const Task cancelled_ = task(514, 5h);
  test::FakeLocal local_;
  std::optional<FarTasks> far_;
};

TEST_F(RemoteLoss, AnOlderStateIsToldAndBringsNoCancelledTaskBack) {
  EXPECT_FALSE(far_->stats().lost);
  back_up();
  step();
  ASSERT_FALSE(far_->stats().lost) << "nothing was lost";
  ASSERT_TRUE(far_->fetch(cancelled_.id).value());
  local_.tasks.clear();
  step();
  EXPECT_FALSE(far_->stats().lost);
  EXPECT_EQ(remote_->size().value(), 1U);
  put_backup_back();
  step();
  ASSERT_TRUE(far_->stats().lost);
  EXPECT_NE(far_->stats().lost->message.find("it keeps 2 tasks and kept 1"), std::string::npos)
      << far_->stats().lost->message;
  EXPECT_FALSE(far_->find(cancelled_.id).value());
  EXPECT_EQ(far_->find(kept_.id).value(), kept_);
}

TEST_F(RemoteLoss, AServerThatBeginsAnewIsToldUntilThatIsAccepted) {
  change_data([this] { fs::remove_all(folder_ / "data"); });
  step();
  ASSERT_TRUE(far_->stats().lost);
  const std::string& told = far_->stats().lost->message;
  EXPECT_NE(told.find("it keeps 0 tasks and kept 2"), std::string::npos) << told;
  EXPECT_NE(told.find("detent put far.folder 1 --key generation"), std::string::npos) << told;
  const auto gone = far_->find(kept_.id);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::unavailable);
  ASSERT_TRUE(client().schedule({.queue = "far.folder",
                                 .payload = {.data = std::to_string(local_.stamped.generation)},
                                 .due = milliseconds{1'000'000h},
                                 .key = "generation"}));
  step();
  EXPECT_FALSE(far_->stats().lost);
  EXPECT_FALSE(far_->find(kept_.id).value());
}

class TwoServers : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(far_.start());
    near_.options().flags.push_back(far_.url() + "?queue=far");
    ASSERT_TRUE(near_.start());
  }
  static void kill(ChildServer& server) {
    server.kill();
    ASSERT_TRUE(server.start());
  }
  Client client() const { return test::client_of(near_.url()); }
  void schedule(std::size_t count, milliseconds delay) {
    const std::vector<client::NewTask> tasks(count, {.queue = "q", .due = delay});
    const auto answers = client().schedule_many(tasks).value();
    for (const auto& answer : answers) handed_out_.emplace(answer.value().id, 0);
  }
  void work() {
    Client now = client();
    std::vector<std::string> leases;
    const auto tasks = now.lease("q", {.max = 1'000, .wait = 200ms}).value();
    for (const client::LeasedTask& task : tasks) {
      ++handed_out_.at(task.id);
      leases.push_back(task.lease);
    }
    done_ += leases.size();
    if (leases.empty()) return;
    ASSERT_TRUE(now.complete(leases));
  }
  std::uint64_t near_count() { return count(client(), "q"); }
  std::uint64_t far_count() { return count(test::client_of(far_.url()), "far"); }
  static std::uint64_t count(Client client, const std::string& name) {
    const auto queue = client.queue(name);
    if (!queue) return 0;
    return queue->scheduled + queue->ready + queue->leased;
  }

  TestFolder folder_;
  ChildServer far_{
      {.program = DETENT_BINARY, .data = folder_ / "far", .flags = {"--window", "1s"}}};
  ChildServer near_{{.program = DETENT_BINARY,
                     .data = folder_ / "near",
                     .flags = {"--window", "1s", "--external-after", "8s", "--external"}}};
  std::map<std::uint64_t, int> handed_out_;  // the number of deliveries of each task
  std::size_t done_ = 0;
};

TEST_F(TwoServers, EveryTaskComesBackAndIsHandedOutOnceWhoeverIsKilled) {
  constexpr std::size_t kTasks = 4'000;
  for (std::size_t i = 0; i < 8; ++i) {
    schedule(kTasks / 8, 20s + milliseconds{400 * i});
    if (i % 3 == 0) kill(far_);
    if (i % 3 == 1) kill(near_);
  }
  while (near_count() != 0) work();
  EXPECT_EQ(done_, 0U) << "all are in the other server";
  EXPECT_EQ(far_count(), kTasks);
  kill(near_);
  kill(far_);
  for (std::size_t rounds = 0; done_ < kTasks; ++rounds) {
    work();
    if (near_count() == 0 || rounds % 8 != 7) continue;
    rounds % 16 == 7 ? kill(far_) : kill(near_);
  }
  for (const auto& [id, times] : handed_out_) EXPECT_EQ(times, 1) << id;
  EXPECT_EQ(handed_out_.size(), kTasks);
  while (far_count() != 0) work();
}

TEST_F(TwoServers, ATaskThatIsAwayIsShownAndCancelledAndOneWhoseRecordIsTooLargeStays) {
  schedule(2, 1h);
  while (near_count() != 0) work();
  const std::uint64_t id = handed_out_.begin()->first;
  EXPECT_EQ(client().get(id).value().state, client::TaskState::scheduled);
  EXPECT_TRUE(client().cancel(id));
  EXPECT_EQ(client().get(id).error().code, ClientError::Code::not_found);
  while (far_count() != 1) work();

  const client::Payload large{client::Payload::Kind::bytes, std::string(kMaxPayloadBytes, 'x')};
  ASSERT_TRUE(client().schedule({.queue = "q", .payload = large, .due = milliseconds{1h}}));
  schedule(1, 1h);
  while (near_count() != 1) work();
  EXPECT_EQ(far_count(), 2U);
}

}  // namespace
}  // namespace detent
