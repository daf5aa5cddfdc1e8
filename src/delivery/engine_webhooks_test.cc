// EngineWebhooks with a real engine on its thread.
#include "delivery/engine_webhooks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <utility>

#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

/// The engine's thread sleeps whenever a test reads its data.
class EngineWebhooksTest : public EngineFixture {
 public:
  EngineWebhooksTest() {
    schedule({.queue = "q", .payload = {}, .webhook = "https://a.test/"});
    thread_ =
        std::make_unique<EngineThread>(OpenEngine{.store = nullptr, .engine = std::move(engine_)},
                                       clock_, EngineEvents{.reopen = [this] { return reopen(); }});
    webhooks_ = std::make_unique<EngineWebhooks>(*thread_);
  }
  ~EngineWebhooksTest() override { thread_->stop(); }

 protected:
  /// Opens a store on the same disk without faults, if it is available.
  Result<OpenEngine> reopen() {
    if (is_away_) return Error{ErrorCode::unavailable, "away", ""};
    store_.reset();
    memory_store_.reset();
    ASSIGN_OR_RETURN(std::unique_ptr<Store> store, MemoryStore::open(*disk_));
    ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::open(*store, clock_, options_));
    return OpenEngine{.store = std::move(store), .engine = std::move(engine)};
  }
  std::future<std::vector<Delivery>> begin_take(std::size_t max = 10) {
    std::promise<std::vector<Delivery>> promise;
    auto taken = promise.get_future();
    webhooks_->take(max, {}, [promise = std::move(promise)](std::vector<Delivery> due) mutable {
      promise.set_value(std::move(due));
    });
    return taken;
  }
  Delivery take_one() {
    std::vector<Delivery> taken = begin_take().get();
    EXPECT_EQ(taken.size(), 1u);
    return taken.at(0);
  }
  /// Runs `look` on the engine's thread and returns its result.
  template <class Look>
  auto on_engine(Look look) {
    std::promise<std::invoke_result_t<Look, Engine&>> promise;
    auto answer = promise.get_future();
    EXPECT_TRUE(thread_->post([&](Engine& engine) { promise.set_value(look(engine)); }));
    return answer.get();
  }
  Result<TaskSnapshot> find(TaskId id) {
    return on_engine([id](Engine& engine) { return engine.get(id); });
  }

  /// Stops the engine's thread, and fills its queue of commands that belong to no queue of tasks.
  /// Each of them takes a millisecond, and calls `look`. Then it calls `post`, and lets the engine
  /// run. Returns the number of commands that ran before `look` returned true.
  int flood(const std::function<void()>& post, const std::function<bool(Engine&)>& look) {
    std::promise<void> go;
    std::atomic<int> before = 0;
    thread_->post_end([held = go.get_future().share()](Engine&) { held.wait(); });
    for (int i = 0; i < kFlood; ++i) {
      thread_->post_end([&](Engine& engine) {
        clock_.advance(1ms);
        if (!look(engine)) ++before;
      });
    }
    post();
    go.set_value();
    on_engine([](Engine&) { return true; });
    return before;
  }

  static constexpr int kFlood = 100;
  std::atomic<bool> is_away_ = false;
  std::unique_ptr<EngineThread> thread_;
  std::unique_ptr<EngineWebhooks> webhooks_;
};

TEST_F(EngineWebhooksTest, TakesDueTasksForLongerThanADeliveryLasts) {
  const Delivery delivery = take_one();
  EXPECT_EQ(delivery.url, "https://a.test/");
  EXPECT_EQ(delivery.leased.attempt, 1u);
  EXPECT_EQ(delivery.leased.lease_until, wall_now() + kDeliveryLease);
}

TEST_F(EngineWebhooksTest, WaitsForTasksThatAreNotDueYet) {
  take_one();
  auto taken = begin_take();
  clock_.await_waiters(1);
  on_engine([](Engine& engine) {
    return engine.schedule({.queue = "q", .due = 5s, .webhook = "https://b.test/"}).has_value();
  });
  clock_.await_waiters(1);
  clock_.advance(5s);
  EXPECT_EQ(taken.get().at(0).url, "https://b.test/");
}

TEST_F(EngineWebhooksTest, EndsALeaseAsTheVerdictSays) {
  const auto id = [](const Delivery& delivery) { return delivery.leased.task.id; };
  const Delivery first = take_one();
  webhooks_->end(first.leased.lease, given_back(10s));
  EXPECT_EQ(find(id(first))->state, TaskState::scheduled);
  EXPECT_EQ(find(id(first))->task.attempts, 0u);
  clock_.advance(10s);
  const Delivery second = take_one();
  webhooks_->end(second.leased.lease,
                 {.verb = Verdict::Verb::fail, .delay = 20s, .error = "HTTP 503"});
  EXPECT_EQ(find(id(first))->task.attempts, 1u);
  EXPECT_EQ(last_error(find(id(first))->task), "HTTP 503");
  EXPECT_EQ(find(id(first))->task.due_at, wall_now() + 20s);
  clock_.advance(20s);
  webhooks_->end(take_one().leased.lease, not_allowed("private"));
  EXPECT_EQ(find(id(first))->state, TaskState::dead);
  on_engine([&](Engine& engine) { return engine.redrive(id(first)).has_value(); });
  const Delivery last = take_one();
  webhooks_->end(last.leased.lease, {.verb = Verdict::Verb::complete});
  EXPECT_EQ(find(id(first)).error().code, ErrorCode::not_found);
  webhooks_->end(last.leased.lease, {.verb = Verdict::Verb::complete});  // must have no effect
}

// A receiver that always sends "Retry-After: 0" must not use up all attempts in one moment.
TEST_F(EngineWebhooksTest, AReceiverDoesNotShortenTheBackoffOfATask) {
  webhooks_->end(take_one().leased.lease, {.verb = Verdict::Verb::complete});
  const TaskId id = on_engine([](Engine& engine) {
    ScheduleRequest request{.queue = "q", .payload = {}, .webhook = "https://a.test/"};
    request.rules.backoff = Backoff{.initial = 1min, .max = 1h};
    return engine.schedule(request)->task.id;
  });
  webhooks_->end(take_one().leased.lease,
                 {.verb = Verdict::Verb::fail, .delay = 1s, .error = "HTTP 429"});
  EXPECT_GE(find(id)->task.due_at, wall_now() + 48s);
}

TEST_F(EngineWebhooksTest, AVerdictDoesNotWaitForCommandsWithoutAQueue) {
  const LeaseToken lease = take_one().leased.lease;
  const auto end = [&] { webhooks_->end(lease, {.verb = Verdict::Verb::complete}); };
  const auto is_over = [&](Engine& engine) { return engine.queue_of(lease).empty(); };
  EXPECT_LE(flood(end, is_over), 10);
}

TEST_F(EngineWebhooksTest, ATakeDoesNotWaitForCommandsWithoutAQueue) {
  std::future<std::vector<Delivery>> taken;
  const auto is_leased = [](Engine& engine) { return engine.queue("q")->stats.leased > 0; };
  EXPECT_LE(flood([&] { taken = begin_take(); }, is_leased), 10);
  EXPECT_EQ(taken.get().size(), 1u);
}

TEST_F(EngineWebhooksTest, AnswersWithNoneWhenTheEngineIsReplaced) {
  take_one();
  auto taken = begin_take();
  clock_.await_waiters(1);
  store_->fail_write(1, WriteFault::not_applied);
  on_engine([](Engine& engine) { return engine.schedule({.queue = "q"}).has_value(); });
  EXPECT_TRUE(taken.get().empty());
}

// Without this, the lease would expire and count as an attempt, although the receiver answered 200.
TEST_F(EngineWebhooksTest, AVerdictDuringAStoreFailureTakesEffectAfterIt) {
  const Delivery delivery = take_one();
  options_.keep_leases = true;
  is_away_ = true;
  store_->fail_write(1, WriteFault::not_applied);
  on_engine([](Engine& engine) { return engine.schedule({.queue = "q"}).has_value(); });
  webhooks_->end(delivery.leased.lease, {.verb = Verdict::Verb::complete});
  EXPECT_EQ(find(delivery.leased.task.id).error().code, ErrorCode::unavailable);
  is_away_ = false;
  clock_.advance(EngineThread::kLongestSleep);
  (void)find(delivery.leased.task.id);  // the engine opens the store in the next turn
  const Result<TaskSnapshot> found = find(delivery.leased.task.id);
  ASSERT_FALSE(found) << static_cast<int>(found->state);
  EXPECT_EQ(found.error().code, ErrorCode::not_found);
}

TEST_F(EngineWebhooksTest, AnswersWithNoneWhenTheEngineStops) {
  take_one();
  auto taken = begin_take();
  on_engine([](Engine& engine) {
    engine.end_waits();
    return true;
  });
  EXPECT_TRUE(taken.get().empty());
  thread_->stop();
  EXPECT_TRUE(begin_take().get().empty());
}

}  // namespace
}  // namespace detent
