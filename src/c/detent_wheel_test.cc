// The wheel of the C interface, as a C program sees it.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "detent/detent.h"

namespace {

using Fired = std::vector<std::pair<detent_timer_id, std::uint64_t>>;

void note(void* context, detent_timer_id timer, std::uint64_t data) {
  static_cast<Fired*>(context)->emplace_back(timer, data);
}

class CWheel : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(detent_wheel_create(100, &wheel_), DETENT_OK); }
  void TearDown() override { EXPECT_EQ(detent_wheel_destroy(wheel_), DETENT_OK); }

  detent_timer_id schedule(std::uint64_t deadline, std::uint64_t data = 0) {
    detent_timer_id timer = 0;
    EXPECT_EQ(detent_wheel_schedule(wheel_, deadline, data, &timer), DETENT_OK);
    EXPECT_NE(timer, 0u);
    return timer;
  }
  Fired advance(std::uint64_t now) {
    Fired fired;
    std::uint64_t count = 99;
    EXPECT_EQ(detent_wheel_advance(wheel_, now, note, &fired, DETENT_NO_LIMIT, &count), DETENT_OK);
    EXPECT_EQ(count, fired.size());
    return fired;
  }

  detent_wheel* wheel_ = nullptr;
};

TEST_F(CWheel, ATimerFiresAtItsDeadlineWithItsData) {
  const detent_timer_id timer = schedule(110, 7);
  EXPECT_EQ(detent_wheel_size(wheel_), 1u);
  EXPECT_EQ(advance(109), Fired{});
  EXPECT_EQ(advance(110), (Fired{{timer, 7}}));
  EXPECT_EQ(detent_wheel_size(wheel_), 0u);
  EXPECT_EQ(detent_wheel_now(wheel_), 110u);
}

TEST_F(CWheel, CancelAnswersExactlyAndReturnsTheData) {
  const detent_timer_id timer = schedule(110, 7);
  std::uint64_t data = 0;
  EXPECT_EQ(detent_wheel_cancel(wheel_, timer, &data), DETENT_OK);
  EXPECT_EQ(data, 7u);
  EXPECT_EQ(detent_wheel_cancel(wheel_, timer, &data), DETENT_NOT_PENDING);
  EXPECT_EQ(advance(200), Fired{});
}

TEST_F(CWheel, AnOldTimerCannotReachANewerOne) {
  const detent_timer_id old = schedule(110, 1);
  EXPECT_EQ(detent_wheel_cancel(wheel_, old, nullptr), DETENT_OK);
  const detent_timer_id timer = schedule(120, 2);
  EXPECT_EQ(detent_wheel_cancel(wheel_, old, nullptr), DETENT_NOT_PENDING);
  EXPECT_EQ(detent_wheel_reschedule(wheel_, old, 105), DETENT_NOT_PENDING);
  EXPECT_EQ(detent_wheel_postpone(wheel_, old, 130), DETENT_NOT_PENDING);
  EXPECT_EQ(advance(120), (Fired{{timer, 2}}));
}

TEST_F(CWheel, ATimerMovesEarlierAndLater) {
  const detent_timer_id first = schedule(150, 1);
  const detent_timer_id second = schedule(110, 2);
  EXPECT_EQ(detent_wheel_reschedule(wheel_, first, 105), DETENT_OK);
  EXPECT_EQ(detent_wheel_postpone(wheel_, second, 160), DETENT_OK);
  EXPECT_EQ(advance(159), (Fired{{first, 1}}));
  EXPECT_EQ(advance(160), (Fired{{second, 2}}));
}

TEST_F(CWheel, TheNextWakeupIsNeverLate) {
  std::uint64_t tick = 7;
  EXPECT_EQ(detent_wheel_next_wakeup(wheel_, &tick), DETENT_NOT_PENDING);
  EXPECT_EQ(tick, 7u);
  schedule(5'000);
  EXPECT_EQ(detent_wheel_next_wakeup(wheel_, &tick), DETENT_OK);
  EXPECT_GT(tick, 100u);
  EXPECT_LE(tick, 5'000u);
}

TEST_F(CWheel, ALimitSaysThatThereIsMore) {
  for (std::uint64_t i = 0; i < 3; ++i) schedule(110, i);
  Fired fired;
  std::uint64_t count = 0;
  EXPECT_EQ(detent_wheel_advance(wheel_, 110, note, &fired, 2, &count), DETENT_MORE);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(detent_wheel_advance(wheel_, 110, note, &fired, 2, nullptr), DETENT_OK);
  EXPECT_EQ(fired.size(), 3u);
}

struct Reentry {
  detent_wheel* wheel;
  detent_timer_id other;
  std::vector<detent_status> statuses;
};

void call_back(void* context, detent_timer_id timer, std::uint64_t) {
  auto& reentry = *static_cast<Reentry*>(context);
  const auto note_status = [&](detent_status status) { reentry.statuses.push_back(status); };
  note_status(detent_wheel_cancel(reentry.wheel, timer, nullptr));
  note_status(detent_wheel_cancel(reentry.wheel, reentry.other, nullptr));
  note_status(detent_wheel_schedule(reentry.wheel, 1'000, 0, nullptr));
  note_status(detent_wheel_advance(reentry.wheel, 2'000, note, nullptr, DETENT_NO_LIMIT, nullptr));
  note_status(detent_wheel_destroy(reentry.wheel));
}

TEST_F(CWheel, ACallbackMayUseItsWheelButNotAdvanceOrDestroyIt) {
  schedule(110);
  Reentry reentry{.wheel = wheel_, .other = schedule(111), .statuses = {}};
  EXPECT_EQ(detent_wheel_advance(wheel_, 120, call_back, &reentry, DETENT_NO_LIMIT, nullptr),
            DETENT_OK);
  EXPECT_EQ(reentry.statuses, (std::vector<detent_status>{DETENT_NOT_PENDING, DETENT_OK, DETENT_OK,
                                                          DETENT_ERROR_INSIDE_CALLBACK,
                                                          DETENT_ERROR_INSIDE_CALLBACK}));
  EXPECT_EQ(detent_wheel_size(wheel_), 1u);
}

TEST_F(CWheel, NullPointersAreErrors) {
  EXPECT_EQ(detent_wheel_create(0, nullptr), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_wheel_destroy(nullptr), DETENT_OK);
  EXPECT_EQ(detent_wheel_schedule(nullptr, 1, 2, nullptr), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_wheel_reschedule(nullptr, 1, 2), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_wheel_postpone(nullptr, 1, 2), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_wheel_cancel(nullptr, 1, nullptr), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_wheel_advance(wheel_, 1, nullptr, nullptr, 1, nullptr), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_wheel_next_wakeup(wheel_, nullptr), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_wheel_size(nullptr), 0u);
  EXPECT_EQ(detent_wheel_now(nullptr), 0u);
}

TEST(CStatus, EveryStatusHasAText) {
  const std::string unknown = detent_status_text(1'000);
  for (detent_status status = DETENT_ERROR_SYSTEM; status <= DETENT_MORE; ++status) {
    EXPECT_NE(detent_status_text(status), unknown) << status;
  }
  EXPECT_EQ(detent_abi_version(), DETENT_ABI_VERSION);
}

}  // namespace
