// The scheduler of the C interface, as a C program sees it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <semaphore>

#include "detent/detent.h"

namespace {

constexpr std::int64_t kHour = 3'600'000'000'000;

/// The user pointer of a job that waits until the test lets it end.
struct Work {
  std::binary_semaphore begun{0};
  std::binary_semaphore may_end{0};
  std::binary_semaphore released{0};
  std::atomic<int> runs = 0;
  std::atomic<int> releases = 0;
  detent_scheduler* scheduler = nullptr;
  std::atomic<detent_status> status = DETENT_OK;
};

void run_at_once(void* user) { ++static_cast<Work*>(user)->runs; }

void run_until_told(void* user) {
  auto& work = *static_cast<Work*>(user);
  ++work.runs;
  work.begun.release();
  work.may_end.acquire();
}

void destroy_own_scheduler(void* user) {
  auto& work = *static_cast<Work*>(user);
  work.status = detent_scheduler_destroy(work.scheduler);
}

void note_release(void* user) {
  auto& work = *static_cast<Work*>(user);
  ++work.releases;
  work.released.release();
}

class CScheduler : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(detent_scheduler_create(nullptr, &scheduler_), DETENT_OK); }
  void TearDown() override { EXPECT_EQ(detent_scheduler_destroy(scheduler_), DETENT_OK); }

  detent_timer* schedule(std::int64_t delay_ns, detent_job job) {
    detent_timer* timer = nullptr;
    EXPECT_EQ(
        detent_scheduler_schedule_after(scheduler_, delay_ns, job, &work_, note_release, &timer),
        DETENT_OK);
    return timer;
  }

  Work work_;  // outlives the scheduler
  detent_scheduler* scheduler_ = nullptr;
};

TEST_F(CScheduler, AJobRunsOnceAndItsUserIsReleased) {
  detent_timer* timer = schedule(0, run_at_once);
  work_.released.acquire();
  EXPECT_EQ(work_.runs, 1);
  detent_timer_cancel_and_wait(timer);
  EXPECT_EQ(detent_timer_cancel(timer), DETENT_NOT_PENDING);
  EXPECT_EQ(work_.releases, 1);
  detent_timer_free(timer);
}

TEST_F(CScheduler, CancelOfAPendingTimerReleasesItsUserInTheCall) {
  detent_timer* timer = schedule(kHour, run_at_once);
  EXPECT_EQ(work_.releases, 0);
  EXPECT_EQ(detent_timer_cancel(timer), DETENT_OK);
  EXPECT_EQ(work_.releases, 1);
  EXPECT_EQ(detent_timer_cancel(timer), DETENT_NOT_PENDING);
  detent_timer_free(timer);
}

TEST_F(CScheduler, CancelOfARunningJobSaysSo) {
  detent_timer* timer = schedule(0, run_until_told);
  work_.begun.acquire();
  EXPECT_EQ(detent_timer_cancel(timer), DETENT_RUNNING);
  EXPECT_EQ(detent_timer_reschedule_after(timer, 0), DETENT_NOT_PENDING);
  EXPECT_EQ(work_.releases, 0);
  work_.may_end.release();
  detent_timer_cancel_and_wait(timer);
  EXPECT_EQ(work_.releases, 1);
  EXPECT_EQ(work_.runs, 1);
  detent_timer_free(timer);
}

TEST_F(CScheduler, APendingTimerMoves) {
  detent_timer* timer = schedule(kHour, run_at_once);
  EXPECT_EQ(detent_timer_reschedule_after(timer, 0), DETENT_OK);
  work_.released.acquire();
  EXPECT_EQ(work_.runs, 1);
  detent_timer_free(timer);
}

TEST_F(CScheduler, AFreedHandleDoesNotCancel) {
  detent_timer_free(schedule(kHour, run_at_once));
  EXPECT_EQ(work_.releases, 0);
  EXPECT_EQ(detent_scheduler_stop(scheduler_, DETENT_DROP, DETENT_NO_TIME_LIMIT), DETENT_OK);
  EXPECT_EQ(work_.releases, 1);
  EXPECT_EQ(work_.runs, 0);
}

TEST_F(CScheduler, StopRunsPendingJobsIfAsked) {
  detent_timer_free(schedule(1'000, run_at_once));
  EXPECT_EQ(detent_scheduler_stop(scheduler_, DETENT_RUN_PENDING, DETENT_NO_TIME_LIMIT), DETENT_OK);
  EXPECT_EQ(work_.runs, 1);
  EXPECT_EQ(work_.releases, 1);
}

TEST_F(CScheduler, StopDropsJobsAfterItsLimit) {
  detent_timer_free(schedule(kHour, run_at_once));
  EXPECT_EQ(detent_scheduler_stop(scheduler_, DETENT_RUN_PENDING, 1'000'000), DETENT_OK);
  EXPECT_EQ(work_.runs, 0);
  EXPECT_EQ(work_.releases, 1);
}

TEST_F(CScheduler, AStoppedSchedulerRefusesAndStillReleases) {
  EXPECT_EQ(detent_scheduler_stop(scheduler_, DETENT_DROP, 0), DETENT_OK);
  detent_timer* timer = nullptr;
  EXPECT_EQ(
      detent_scheduler_schedule_after(scheduler_, 0, run_at_once, &work_, note_release, &timer),
      DETENT_ERROR_STOPPED);
  EXPECT_EQ(timer, nullptr);
  EXPECT_EQ(work_.releases, 1);
}

TEST_F(CScheduler, AnInvalidCallReleasesToo) {
  EXPECT_EQ(detent_scheduler_schedule_after(scheduler_, 0, nullptr, &work_, note_release, nullptr),
            DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_scheduler_schedule_after(nullptr, 0, run_at_once, &work_, note_release, nullptr),
            DETENT_ERROR_INVALID);
  EXPECT_EQ(work_.releases, 2);
  EXPECT_EQ(detent_scheduler_stop(scheduler_, 3, 0), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_scheduler_stop(nullptr, DETENT_DROP, 0), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_timer_cancel(nullptr), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_timer_cancel_and_wait(nullptr), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_timer_reschedule_after(nullptr, 0), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_scheduler_destroy(nullptr), DETENT_OK);
  detent_timer_free(nullptr);
}

TEST_F(CScheduler, AJobMustNotDestroyItsScheduler) {
  work_.scheduler = scheduler_;
  detent_timer_free(schedule(0, destroy_own_scheduler));
  work_.released.acquire();
  EXPECT_EQ(work_.status, DETENT_ERROR_INSIDE_CALLBACK);
}

TEST_F(CScheduler, AHandleMayOutliveItsScheduler) {
  detent_scheduler* other = nullptr;
  ASSERT_EQ(detent_scheduler_create(nullptr, &other), DETENT_OK);
  detent_timer* timer = nullptr;
  ASSERT_EQ(detent_scheduler_schedule_after(other, kHour, run_at_once, &work_, nullptr, &timer),
            DETENT_OK);
  EXPECT_EQ(detent_scheduler_destroy(other), DETENT_OK);
  EXPECT_EQ(detent_timer_cancel(timer), DETENT_NOT_PENDING);
  detent_timer_free(timer);
}

TEST(CSchedulerOptions, TheCapacityIsALimitAndASizeIsRequired) {
  detent_scheduler_options options{};
  detent_scheduler* scheduler = nullptr;
  EXPECT_EQ(detent_scheduler_create(&options, &scheduler), DETENT_ERROR_INVALID);
  options.size = sizeof(options);
  options.resolution_ns = -1;
  EXPECT_EQ(detent_scheduler_create(&options, &scheduler), DETENT_ERROR_INVALID);
  EXPECT_EQ(detent_scheduler_create(&options, nullptr), DETENT_ERROR_INVALID);
  options.resolution_ns = 1'000'000;
  options.capacity = 1;
  ASSERT_EQ(detent_scheduler_create(&options, &scheduler), DETENT_OK);
  Work work;
  EXPECT_EQ(
      detent_scheduler_schedule_after(scheduler, kHour, run_at_once, &work, note_release, nullptr),
      DETENT_OK);
  EXPECT_EQ(
      detent_scheduler_schedule_after(scheduler, kHour, run_at_once, &work, note_release, nullptr),
      DETENT_ERROR_FULL);
  EXPECT_EQ(work.releases, 1);
  EXPECT_EQ(detent_scheduler_destroy(scheduler), DETENT_OK);
  EXPECT_EQ(work.releases, 2);
}

}  // namespace
