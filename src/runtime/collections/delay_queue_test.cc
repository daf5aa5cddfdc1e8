// DelayQueue on one thread: which elements come out, when, and what happens to their values.
#include "detent/delay_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace detent {
namespace {

using namespace std::chrono_literals;

/// Takes out all due elements.
template <class T>
std::vector<T> pop_due(DelayQueue<T>& queue) {
  std::vector<T> taken;
  while (std::optional<T> value = queue.try_pop()) taken.push_back(std::move(*value));
  return taken;
}

// ---- one thread: elements and times -------------------------------------------------------------

TEST(DelayQueue, HandsOutAtTheDeadlineAndNotANanosecondBefore) {
  ManualClock clock;
  DelayQueue<int> queue({.clock = &clock});
  EXPECT_EQ(queue.push(1, 250ms), PushResult::pushed);
  clock.advance(250ms - 1ns);
  EXPECT_EQ(queue.try_pop(), std::nullopt);
  EXPECT_EQ(queue.size(), 1u);
  clock.advance(1ns);
  EXPECT_EQ(queue.try_pop(), 1);
  EXPECT_TRUE(queue.empty());
}

TEST(DelayQueue, HandsOutTheEarliestFirst) {
  ManualClock clock;
  DelayQueue<int> queue({.clock = &clock});
  for (const int delay : {5, 1, 4, 2, 3}) queue.push(delay, std::chrono::seconds{delay});
  clock.advance(4s);
  EXPECT_EQ(pop_due(queue), (std::vector{1, 2, 3, 4}));
}

TEST(DelayQueue, HandsOutEqualDeadlinesInTheOrderTheyWerePushed) {
  ManualClock clock;
  DelayQueue<int> queue({.clock = &clock});
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    queue.push(i, 1s);
    queue.push(-1 - i, 2s);
    order.push_back(i);
  }
  clock.advance(1s);
  EXPECT_EQ(pop_due(queue), order);
}

TEST(DelayQueue, TreatsNonPositiveDelaysAsDueImmediately) {
  ManualClock clock;
  DelayQueue<int> queue({.clock = &clock});
  queue.push(1, 0s);
  queue.push(2, -1h);
  queue.push(3, std::chrono::hours::min());
  queue.push_at(4, MonotonicTime::min());
  EXPECT_EQ(pop_due(queue), (std::vector{4, 1, 2, 3})) << "a delay counts from now, at least";
}

TEST(DelayQueue, NeverHandsOutADelayThatIsLongerThanTime) {
  ManualClock clock;
  DelayQueue<int> queue({.clock = &clock});
  clock.advance(1h);
  queue.push(1, std::chrono::hours::max());
  queue.push_at(2, MonotonicTime::max());
  clock.advance(200 * 365 * 24h);
  EXPECT_TRUE(pop_due(queue).empty());
  EXPECT_EQ(queue.size(), 2u);
}

TEST(DelayQueue, RoundsADelayUp) {
  ManualClock clock;
  DelayQueue<int> queue({.clock = &clock});
  queue.push(1, std::chrono::duration<double, std::nano>(1.25));
  clock.advance(1ns);
  EXPECT_EQ(queue.try_pop(), std::nullopt);
  clock.advance(1ns);
  EXPECT_EQ(queue.try_pop(), 1);
}

TEST(DelayQueue, UsesTheSystemClockByDefault) {
  const SystemClock clock;
  DelayQueue<int> queue;
  const MonotonicTime start = clock.now();
  queue.push(1, 2ms);
  EXPECT_EQ(queue.pop_for(0ms), std::nullopt);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_GE(clock.now(), start + 2ms);
}

// ---- one thread: values -------------------------------------------------------------------------

TEST(DelayQueue, HoldsMoveOnlyValues) {
  ManualClock clock;
  DelayQueue<std::unique_ptr<int>> queue({.clock = &clock});
  queue.push(std::make_unique<int>(42), 0s);
  const std::optional<std::unique_ptr<int>> value = queue.try_pop();
  ASSERT_TRUE(value);
  EXPECT_EQ(**value, 42);
}

TEST(DelayQueue, CopiesAnLvalueAndConvertsAnArgument) {
  ManualClock clock;
  DelayQueue<std::string> queue({.clock = &clock});
  std::string text = "a text too long to be kept inside the string";
  const std::string same = text;
  queue.push(text, 0s);
  queue.push("literal", 0s);
  EXPECT_EQ(text, same);
  EXPECT_EQ(pop_due(queue), (std::vector<std::string>{same, "literal"}));
}

TEST(DelayQueue, LeavesARefusedRvalueToItsOwner) {
  ManualClock clock;
  DelayQueue<std::unique_ptr<int>> queue({.capacity = 1, .clock = &clock});
  std::array<std::unique_ptr<int>, 4> values;
  for (std::unique_ptr<int>& value : values) value = std::make_unique<int>(42);
  queue.push(std::make_unique<int>(1), 0s);
  EXPECT_EQ(queue.try_push(std::move(values[0]), 0s), PushResult::full);
  EXPECT_EQ(queue.push_for(-1s, std::move(values[1]), 0s), PushResult::full);
  queue.close();
  EXPECT_EQ(queue.push(std::move(values[2]), 0s), PushResult::closed);
  EXPECT_EQ(queue.push_at(std::move(values[3]), clock.now()), PushResult::closed);
  for (const std::unique_ptr<int>& value : values) {
    ASSERT_NE(value, nullptr);
    EXPECT_EQ(*value, 42);
  }
}

TEST(DelayQueue, KeepsNoReferenceToAnElementThatWasPopped) {
  ManualClock clock;
  std::weak_ptr<int> watch;
  DelayQueue<std::shared_ptr<int>> queue({.clock = &clock});
  auto owner = std::make_shared<int>(1);
  watch = owner;
  queue.push(std::move(owner), 0s);
  EXPECT_EQ(watch.use_count(), 1);
  queue.try_pop().reset();
  EXPECT_TRUE(watch.expired());
}

TEST(DelayQueue, DestroysRemainingElements) {
  auto owner = std::make_shared<int>(1);
  {
    DelayQueue<std::shared_ptr<int>> queue;
    queue.push(owner, 1h);
    queue.push(owner, 0s);
    EXPECT_EQ(owner.use_count(), 3);
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(DelayQueue, GivesMemoryBackWhenAQuarterOfItIsUsed) {
  ManualClock clock;
  DelayQueue<int> queue({.clock = &clock});
  for (int i = 0; i < 10'000; ++i) queue.push(i, 0s);
  EXPECT_GE(queue.allocated(), 10'000u);
  while (queue.size() > 100) {
    queue.try_pop();
    ASSERT_LE(queue.allocated(), 4 * queue.size() + 4);
  }
  queue.take_all();
  EXPECT_EQ(queue.allocated(), 0u);
}

/// Its copies and moves count down, and throw when the counter reaches zero.
struct Fragile {
  explicit Fragile(int& counter) : countdown(&counter) {}
  Fragile(const Fragile& other) : countdown(other.countdown) { count(); }
  Fragile& operator=(const Fragile& other) {
    if (this == &other) return *this;
    countdown = other.countdown;
    count();
    return *this;
  }
  ~Fragile() = default;
  void count() const {
    if (--*countdown == 0) throw std::runtime_error("fragile");
  }
  int* countdown;
};

TEST(DelayQueue, IsUnchangedIfAnElementThrowsOnItsWayIn) {
  ManualClock clock;
  DelayQueue<Fragile> queue({.capacity = 1, .clock = &clock});
  int countdown = 1;
  EXPECT_THROW(queue.push(Fragile(countdown), 0s), std::runtime_error);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.try_push(Fragile(countdown), 0s), PushResult::pushed);
}

TEST(DelayQueue, LosesOnlyTheElementThatThrowsOnItsWayOut) {
  ManualClock clock;
  DelayQueue<Fragile> queue({.capacity = 2, .clock = &clock});
  int countdown = 0;
  queue.push(Fragile(countdown), 0s);
  queue.push(Fragile(countdown), 1s);
  countdown = 1;
  EXPECT_THROW(queue.try_pop(), std::runtime_error);
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.try_push(Fragile(countdown), 2s), PushResult::pushed);
  clock.advance(1s);
  EXPECT_TRUE(queue.try_pop());
}

/// Calls size() of its queue whenever it is moved or destroyed, as the types of users may do.
struct Curious {
  explicit Curious(const DelayQueue<Curious>& its_queue) : queue(&its_queue) {}
  Curious(Curious&& other) noexcept : queue(other.queue) { look(); }
  Curious& operator=(Curious&& other) noexcept {
    queue = other.queue;
    look();
    return *this;
  }
  ~Curious() { look(); }
  void look() const { static_cast<void>(queue->size()); }
  const DelayQueue<Curious>* queue;
};

// A call with the lock held would wait for this lock forever.
TEST(DelayQueue, NeverCallsAnElementWithItsLockHeld) {
  ManualClock clock;
  DelayQueue<Curious> queue({.capacity = 2, .clock = &clock});
  queue.push(Curious(queue), 0s);
  queue.push(Curious(queue), 1s);
  EXPECT_EQ(queue.try_push(Curious(queue), 0s), PushResult::full);
  EXPECT_TRUE(queue.try_pop());
  EXPECT_EQ(queue.take_all().size(), 1u);
}

// ---- one thread: closing ------------------------------------------------------------------------

TEST(DelayQueue, ClosedQueueReturnsItsElementsWhenDueAndThenEnds) {
  ManualClock clock;
  DelayQueue<int> queue({.clock = &clock});
  queue.push(1, 1s);
  queue.close();
  queue.close();
  EXPECT_EQ(queue.push(2, 0s), PushResult::closed);
  EXPECT_EQ(queue.try_push(2, 0s), PushResult::closed);
  EXPECT_EQ(queue.push_for(1s, 2, 0s), PushResult::closed);
  EXPECT_TRUE(queue.is_closed());
  EXPECT_EQ(queue.try_pop(), std::nullopt);
  clock.advance(1s);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), std::nullopt);
  EXPECT_EQ(queue.pop_for(1h), std::nullopt);
}

TEST(DelayQueue, TakeAllHandsBackEverythingInOrderWithItsDeadline) {
  ManualClock clock;
  DelayQueue<int> queue({.clock = &clock});
  clock.advance(10s);
  queue.push(3, 2s);
  queue.push(1, 0s);
  queue.push(4, 2s);
  queue.push(2, 1s);
  const std::vector<Delayed<int>> left = queue.take_all();
  std::vector<int> values;
  std::vector<MonotonicTime> deadlines;
  for (const Delayed<int>& element : left) {
    values.push_back(element.value);
    deadlines.push_back(element.deadline);
  }
  const MonotonicTime now = clock.now();
  EXPECT_EQ(values, (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(deadlines, (std::vector{now, now + 1s, now + 2s, now + 2s}));
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.push(5, 0s), PushResult::pushed) << "it was not closed";
}

TEST(DelayQueueDeathTest, RefusesACapacityOfZero) {
  EXPECT_DEATH(DelayQueue<int>({.capacity = 0}), "capacity_ >= 1");
}

}  // namespace
}  // namespace detent
