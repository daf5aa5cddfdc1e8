// The C interface: ten connections time out on a wheel, in an hour of simulated seconds. Then a
// scheduler runs a job on its own thread.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detent/detent.h"

enum { kConnections = 10, kIdleSeconds = 300 };

struct connection {
  int number;
  detent_timer_id timer;
};

static void check(detent_status status) {
  if (status < 0) {
    fprintf(stderr, "%s\n", detent_status_text(status));
    exit(EXIT_FAILURE);
  }
}

// `data` is the pointer that was scheduled, and `context` the argument of detent_wheel_advance.
static void time_out(void* context, detent_timer_id timer, uint64_t data) {
  const struct connection* connection = (const struct connection*)(uintptr_t)data;
  (void)timer;
  printf("connection %d timed out\n", connection->number);
  ++*(int*)context;
}

static int run_wheel(void) {
  struct connection connections[kConnections];
  detent_wheel* wheel = NULL;  // one tick is one second here; you choose its length
  int timed_out = 0;
  check(detent_wheel_create(0, &wheel));
  for (int i = 0; i < kConnections; ++i) {
    connections[i].number = i;
    check(detent_wheel_schedule(wheel, kIdleSeconds, (uint64_t)(uintptr_t)&connections[i],
                                &connections[i].timer));
  }
  for (uint64_t now = 60; now <= 3600; now += 60) {
    // Connection 7 has traffic every minute.
    check(detent_wheel_postpone(wheel, connections[7].timer, now + kIdleSeconds));
    check(detent_wheel_advance(wheel, now, time_out, &timed_out, DETENT_NO_LIMIT, NULL));
  }
  printf("%d timed out, %" PRIu64 " still open\n", timed_out, detent_wheel_size(wheel));
  const int is_right =
      timed_out == 9 && detent_wheel_cancel(wheel, connections[7].timer, NULL) == DETENT_OK;
  check(detent_wheel_destroy(wheel));
  return is_right;
}

static int runs = 0;  // written by the thread of the scheduler, read after detent_scheduler_stop

static void greet(void* user) {
  printf("after 20 ms: %s\n", (const char*)user);
  ++runs;
}

static int run_scheduler(void) {
  detent_scheduler* scheduler = NULL;
  detent_timer* cancelled = NULL;
  char* text = malloc(6);
  if (text == NULL) return 0;
  memcpy(text, "hello", 6);
  check(detent_scheduler_create(NULL, &scheduler));
  // The scheduler frees the text after the job has run.
  check(detent_scheduler_schedule_after(scheduler, 20 * 1000000, greet, text, free, NULL));
  check(detent_scheduler_schedule_after(scheduler, INT64_MAX, greet, NULL, NULL, &cancelled));
  const int is_cancelled = detent_timer_cancel(cancelled) == DETENT_OK;
  detent_timer_free(cancelled);
  check(detent_scheduler_stop(scheduler, DETENT_RUN_PENDING, DETENT_NO_TIME_LIMIT));
  check(detent_scheduler_destroy(scheduler));
  return is_cancelled && runs == 1;
}

int main(void) {
  printf("detent %s\n", detent_version());
  return run_wheel() && run_scheduler() ? EXIT_SUCCESS : EXIT_FAILURE;
}
