#include "detent/member_timer.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "wheel/test_queues.h"

namespace detent {
namespace {

// The timers are not its first part, and it is a timer itself. So a plain cast would give a wrong
// address.
template <class Base>
struct Session : Base {
  std::string name;
  MemberTimer<Session, Base> read{*this};
  MemberTimer<Session, Base> write{*this};
};

static_assert(sizeof(MemberTimer<int>) == sizeof(Timer) + sizeof(void*));
static_assert(!std::is_move_constructible_v<Session<Timer>>);

template <class Case>
class MemberTimerOf : public testing::Test {};
TYPED_TEST_SUITE(MemberTimerOf, EveryQueue, QueueNames);

TYPED_TEST(MemberTimerOf, EachTimerLeadsToItsOwner) {
  using Base = TimerOf<TypeParam>;
  auto queue = TypeParam::make(0);
  Session<Base> first;
  Session<Base> second;
  first.name = "first";
  second.name = "second";
  queue->schedule(second.write, 10);
  queue->schedule(first.read, 20);
  queue->schedule(second.read, 30);
  queue->schedule(first.write, 40);
  queue->cancel(second.read);
  std::vector<std::string> fired;
  queue->advance(50, [&](Base& timer) noexcept {
    Session<Base>& owner = MemberTimer<Session<Base>, Base>::owner_of(timer);
    fired.push_back(owner.name + (&timer == &owner.read ? " reads" : " writes"));
  });
  EXPECT_EQ(fired, (std::vector<std::string>{"second writes", "first reads", "first writes"}));
  EXPECT_EQ(&first.write.owner(), &first);
}

}  // namespace
}  // namespace detent
