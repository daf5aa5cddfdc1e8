// The C interface of the library: a timing wheel, and a scheduler with its own thread. For C99, and
// for each language that can call C. The library is libdetent.so; in CMake, the target detent::c.
//
// Examples: examples/17_c_interface.c and examples/18_ctypes.py. The guide is docs/guides/c.md. The
// C++ headers detent/timer_wheel.h and detent/scheduler.h explain the ideas.
//
// Rules for every function:
//
// - A function that can fail returns a detent_status. Negative values are errors. A function that
//   fails changes nothing and writes no value behind a pointer. The comments name the exceptions.
// - A pointer must be valid or null. A null pointer gives DETENT_ERROR_INVALID, except where the
//   comment says "may be null".
// - No C++ exception leaves a function. Your callbacks must not throw either, and must not leave
//   with longjmp: an exception ends the process.
// - If memory runs out, functions that make or move something return DETENT_ERROR_NO_MEMORY. Three
//   cases end the process instead: detent_wheel_advance, detent_wheel_postpone, and the memory that
//   a running scheduler needs for its timers.
// - After fork(), the child process must not use a scheduler of its parent.
//
// The binary interface is stable: programs that were compiled with an older version of this header
// work with a newer libdetent.so of the same DETENT_ABI_VERSION.
#pragma once

#include <stdint.h>

/// The version of the binary interface, which is also the number in the SONAME.
#define DETENT_ABI_VERSION 1

#if defined(__GNUC__)
#define DETENT_API __attribute__((visibility("default")))
#else
#define DETENT_API
#endif
#ifdef __cplusplus
#define DETENT_NOEXCEPT noexcept
extern "C" {
#else
#define DETENT_NOEXCEPT
#endif

// NOLINTBEGIN(modernize-use-using,readability-identifier-naming): names and types for C

// ---- Status -------------------------------------------------------------------------------------

/// The result of a function: one of the constants below. A later version may add constants.
typedef int32_t detent_status;

enum {
  DETENT_OK = 0,                      ///< done
  DETENT_NOT_PENDING = 1,             ///< there is no such timer, or it has fired or was cancelled
  DETENT_RUNNING = 2,                 ///< the job of the timer is running; this run continues
  DETENT_MORE = 3,                    ///< the limit ended the call; call again to continue
  DETENT_ERROR_INVALID = -1,          ///< an argument is not allowed
  DETENT_ERROR_NO_MEMORY = -2,        ///< an allocation failed
  DETENT_ERROR_INSIDE_CALLBACK = -3,  ///< a callback must not call this function
  DETENT_ERROR_STOPPED = -4,          ///< the scheduler has stopped
  DETENT_ERROR_FULL = -5,             ///< the scheduler has reached its capacity
  DETENT_ERROR_SYSTEM = -6            ///< the system could not start a thread
};

/// Returns a short English text for people. The library owns the text, which lives forever. Also
/// accepts values that are no status. Thread-safe.
DETENT_API const char* detent_status_text(detent_status status) DETENT_NOEXCEPT;

/// Returns the version of the library, for example "0.1.0". The library owns the text, which lives
/// forever. Thread-safe.
DETENT_API const char* detent_version(void) DETENT_NOEXCEPT;

/// Returns DETENT_ABI_VERSION of the library that is loaded. Thread-safe.
DETENT_API int32_t detent_abi_version(void) DETENT_NOEXCEPT;

// ---- Wheel --------------------------------------------------------------------------------------

/// A timing wheel: timers that fire when the caller says that time has passed. It has no thread and
/// no clock. Times are ticks, whose length the caller chooses. Only one thread at a time may use a
/// wheel; different wheels are independent.
///
/// Memory: about 34 bytes for a pending timer, and 17 KB for a wheel.
typedef struct detent_wheel detent_wheel;

/// Names one timer of one wheel. The value is never 0 and never reused by this wheel. So a call
/// with the id of a timer that has ended is safe: the timer is not pending.
typedef uint64_t detent_timer_id;

/// Called for each due timer, with the `context` of detent_wheel_advance, the timer and its data.
/// The timer is not pending any more. The callback may call every function of its wheel, except
/// detent_wheel_advance and detent_wheel_destroy.
typedef void (*detent_wheel_callback)(void* context, detent_timer_id timer, uint64_t data);

/// No limit for detent_wheel_advance.
#define DETENT_NO_LIMIT UINT64_MAX

/// Makes an empty wheel whose time is `now`, and stores it in `*wheel`. The caller owns the wheel
/// and must destroy it. O(1).
DETENT_API detent_status detent_wheel_create(uint64_t now, detent_wheel** wheel) DETENT_NOEXCEPT;

/// Destroys a wheel with all its timers, and calls no callback. `wheel` may be null. If the data of
/// pending timers are pointers that you own, free them first: call detent_wheel_advance to
/// UINT64_MAX with a callback that frees. Returns DETENT_ERROR_INSIDE_CALLBACK inside a callback of
/// this wheel. O(timers).
DETENT_API detent_status detent_wheel_destroy(detent_wheel* wheel) DETENT_NOEXCEPT;

/// Schedules a timer that fires in the first detent_wheel_advance whose time is at or after
/// `deadline`. A deadline at or before the current time fires in the next call. `data` is a number,
/// or a pointer as uintptr_t. The wheel only stores it. Stores the timer in `*timer`, which may be
/// null. Amortised O(1).
DETENT_API detent_status detent_wheel_schedule(detent_wheel* wheel, uint64_t deadline,
                                               uint64_t data,
                                               detent_timer_id* timer) DETENT_NOEXCEPT;

/// Moves a pending timer to `deadline`. Returns DETENT_NOT_PENDING if the timer is not pending.
/// Amortised O(1).
DETENT_API detent_status detent_wheel_reschedule(detent_wheel* wheel, detent_timer_id timer,
                                                 uint64_t deadline) DETENT_NOEXCEPT;

/// As detent_wheel_reschedule, but cheaper if `deadline` is later than before: it stores only the
/// deadline. Use it for a time-out that each message moves. Amortised O(1).
DETENT_API detent_status detent_wheel_postpone(detent_wheel* wheel, detent_timer_id timer,
                                               uint64_t deadline) DETENT_NOEXCEPT;

/// Cancels a timer. Returns DETENT_OK if it was pending: it will not fire, and its data is stored
/// in `*data`, which may be null. Returns DETENT_NOT_PENDING if it was not pending. O(1).
DETENT_API detent_status detent_wheel_cancel(detent_wheel* wheel, detent_timer_id timer,
                                             uint64_t* data) DETENT_NOEXCEPT;

/// Moves time forward to `now` and calls `callback` for every due timer, in the order of deadlines.
/// The order of equal deadlines is unspecified. Time never moves backward: an earlier `now` counts
/// as the current time. If a callback schedules a timer at or before `now`, the timer waits for the
/// next call.
///
/// At most `limit` timers are fired or moved between slots. Returns DETENT_MORE if work is left;
/// call again with the same time. Stores the number of timers that fired in `*fired`, which may be
/// null. `context` may be null. O(1) for each timer fired or moved, and O(1) per call.
DETENT_API detent_status detent_wheel_advance(detent_wheel* wheel, uint64_t now,
                                              detent_wheel_callback callback, void* context,
                                              uint64_t limit, uint64_t* fired) DETENT_NOEXCEPT;

/// Stores the next tick at which detent_wheel_advance can have work in `*tick`. The tick is never
/// later than the earliest deadline, but it can be earlier. Returns DETENT_NOT_PENDING if the wheel
/// has no timer. O(1).
DETENT_API detent_status detent_wheel_next_wakeup(const detent_wheel* wheel,
                                                  uint64_t* tick) DETENT_NOEXCEPT;

/// Returns the current time of the wheel, in ticks. Returns 0 if `wheel` is null. O(1).
DETENT_API uint64_t detent_wheel_now(const detent_wheel* wheel) DETENT_NOEXCEPT;

/// Returns the number of pending timers. Returns 0 if `wheel` is null. O(1).
DETENT_API uint64_t detent_wheel_size(const detent_wheel* wheel) DETENT_NOEXCEPT;

// ---- Scheduler ----------------------------------------------------------------------------------

/// Runs jobs after a delay, on a thread of its own. Thread-safe. All its functions except
/// detent_scheduler_destroy may be called from inside a job.
typedef struct detent_scheduler detent_scheduler;

/// A handle for one timer of a scheduler. Each handle is used by one thread at a time. A handle may
/// outlive its timer and its scheduler; the timer is then not pending.
typedef struct detent_timer detent_timer;

/// A job: called with the `user` pointer of its timer, on the thread of the scheduler. A long job
/// makes the other jobs late.
typedef void (*detent_job)(void* user);

/// Frees a `user` pointer. It must not use the scheduler.
typedef void (*detent_release)(void* user);

/// Options of a scheduler. Set every field to 0, then `size` to sizeof(detent_scheduler_options),
/// then the fields that you need. A later version may add fields at the end; `size` tells the
/// library which fields exist.
typedef struct detent_scheduler_options {
  uint64_t size;          ///< sizeof(detent_scheduler_options)
  int64_t resolution_ns;  ///< deadlines are rounded up to multiples of this; 0: 10,000 (10 us)
  uint64_t capacity;      ///< the largest number of timers, pending and running; 0: no limit
} detent_scheduler_options;

/// What detent_scheduler_stop does with pending timers.
enum {
  DETENT_DROP = 0,        ///< their jobs do not run
  DETENT_RUN_DUE = 1,     ///< the due jobs run, the others do not
  DETENT_RUN_PENDING = 2  ///< each job runs at its time
};

/// No limit for the time that detent_scheduler_stop takes.
#define DETENT_NO_TIME_LIMIT INT64_MAX

/// Starts a scheduler with its thread, and stores it in `*scheduler`. `options` may be null. The
/// caller owns the scheduler and must destroy it. Returns DETENT_ERROR_INVALID if `size` is not the
/// size of a known version, or if a field is negative. Returns DETENT_ERROR_SYSTEM if the thread
/// cannot be started.
DETENT_API detent_status detent_scheduler_create(const detent_scheduler_options* options,
                                                 detent_scheduler** scheduler) DETENT_NOEXCEPT;

/// Stops the scheduler with DETENT_DROP, waits until no job runs, and destroys it. `scheduler` may
/// be null. Returns DETENT_ERROR_INSIDE_CALLBACK inside a job of this scheduler. No other thread
/// may use the scheduler during or after this call.
DETENT_API detent_status detent_scheduler_destroy(detent_scheduler* scheduler) DETENT_NOEXCEPT;

/// Runs `job(user)` once, `delay_ns` nanoseconds from now, never earlier. A delay of 0 or less is
/// due immediately. `user` and `release` may be null.
///
/// The scheduler takes `user`: it calls `release(user)` exactly once. This happens after the job
/// has run, or when the timer is cancelled or dropped, or in this call if the call fails. `release`
/// is called on the thread of the scheduler, or on the thread that cancels or stops.
///
/// Stores a handle in `*timer`, which the caller owns and must free. `timer` may be null: the timer
/// then runs without a handle. Returns DETENT_ERROR_STOPPED or DETENT_ERROR_FULL if the scheduler
/// refuses the timer. O(1); allocates.
DETENT_API detent_status detent_scheduler_schedule_after(detent_scheduler* scheduler,
                                                         int64_t delay_ns, detent_job job,
                                                         void* user, detent_release release,
                                                         detent_timer** timer) DETENT_NOEXCEPT;

/// Cancels the timer, with an exact answer. DETENT_OK: it was pending, its job will not run, and
/// its `user` has been released. DETENT_RUNNING: its job runs at this moment. DETENT_NOT_PENDING:
/// the job has run, or the timer was cancelled or dropped before. The handle must still be freed.
/// O(1).
DETENT_API detent_status detent_timer_cancel(detent_timer* timer) DETENT_NOEXCEPT;

/// As detent_timer_cancel. But if the job runs, waits until it has returned and `user` has been
/// released; the answer is DETENT_RUNNING. Inside the job itself it does not wait.
DETENT_API detent_status detent_timer_cancel_and_wait(detent_timer* timer) DETENT_NOEXCEPT;

/// Moves a pending timer to `delay_ns` nanoseconds from now. Returns DETENT_NOT_PENDING if its job
/// runs or the timer has ended. O(1).
DETENT_API detent_status detent_timer_reschedule_after(detent_timer* timer,
                                                       int64_t delay_ns) DETENT_NOEXCEPT;

/// Frees the handle. The timer continues; cancel it first if it must not run. `timer` may be null.
DETENT_API void detent_timer_free(detent_timer* timer) DETENT_NOEXCEPT;

/// Ends all timers and waits until no job runs. From now on, the scheduler refuses new timers.
/// `drain` is DETENT_DROP, DETENT_RUN_DUE or DETENT_RUN_PENDING. Jobs that have not begun
/// `limit_ns` nanoseconds from now are dropped; a limit of 0 or less drops them now. The call still
/// waits for a job that runs then. Inside a job, it does not wait. A later call may only drop more,
/// or drop earlier.
DETENT_API detent_status detent_scheduler_stop(detent_scheduler* scheduler, int32_t drain,
                                               int64_t limit_ns) DETENT_NOEXCEPT;

// NOLINTEND(modernize-use-using,readability-identifier-naming)

#ifdef __cplusplus
}  // extern "C"
#endif
