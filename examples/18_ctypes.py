#!/usr/bin/env python3
"""The C interface from Python, without a package: ctypes loads libdetent.so. Ten connections time
out on a wheel, in an hour of simulated seconds. Then a scheduler runs a job on its own thread.

The argument is the path of libdetent.so.
"""

import ctypes
import sys
import threading
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_uint64, c_void_p

OK, NOT_PENDING = 0, 1
NO_LIMIT = 2**64 - 1
IDLE_SECONDS = 300

OnFire = ctypes.CFUNCTYPE(None, c_void_p, c_uint64, c_uint64)  # context, timer, data
Job = ctypes.CFUNCTYPE(None, c_void_p)  # user; also the type of a release function

# Name → the types of its arguments. Each of these functions returns a status.
FUNCTIONS = {
    "detent_wheel_create": (c_uint64, POINTER(c_void_p)),
    "detent_wheel_destroy": (c_void_p,),
    "detent_wheel_schedule": (c_void_p, c_uint64, c_uint64, POINTER(c_uint64)),
    "detent_wheel_postpone": (c_void_p, c_uint64, c_uint64),
    "detent_wheel_cancel": (c_void_p, c_uint64, POINTER(c_uint64)),
    "detent_wheel_advance": (c_void_p, c_uint64, OnFire, c_void_p, c_uint64, POINTER(c_uint64)),
    "detent_scheduler_create": (c_void_p, POINTER(c_void_p)),
    "detent_scheduler_schedule_after": (c_void_p, c_int64, Job, c_void_p, Job, POINTER(c_void_p)),
    "detent_scheduler_destroy": (c_void_p,),
    "detent_timer_cancel": (c_void_p,),
}


def load(path):
    library = ctypes.CDLL(path)
    library.detent_version.restype = c_char_p
    library.detent_status_text.restype = c_char_p
    library.detent_wheel_size.restype = c_uint64
    library.detent_wheel_size.argtypes = [c_void_p]
    library.detent_timer_free.argtypes = [c_void_p]
    library.detent_timer_free.restype = None

    def check(status, _function, _arguments):
        if status < 0:
            raise RuntimeError(library.detent_status_text(status).decode())
        return status

    for name, arguments in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype, function.errcheck = list(arguments), c_int32, check
    return library


def run_wheel(detent):
    wheel, timed_out = c_void_p(), []
    detent.detent_wheel_create(0, byref(wheel))
    timers = []
    for number in range(10):
        timer = c_uint64()
        detent.detent_wheel_schedule(wheel, IDLE_SECONDS, number, byref(timer))
        timers.append(timer)

    # Keep a reference to the callback while the library can call it.
    on_fire = OnFire(lambda context, timer, number: timed_out.append(number))
    for now in range(60, 3601, 60):
        detent.detent_wheel_postpone(wheel, timers[7], now + IDLE_SECONDS)  # it has traffic
        detent.detent_wheel_advance(wheel, now, on_fire, None, NO_LIMIT, None)
    print(f"{len(timed_out)} timed out, {detent.detent_wheel_size(wheel)} still open")
    assert sorted(timed_out) == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert detent.detent_wheel_cancel(wheel, timers[7], None) == OK
    assert detent.detent_wheel_cancel(wheel, timers[7], None) == NOT_PENDING
    detent.detent_wheel_destroy(wheel)


def run_scheduler(detent):
    scheduler, timer = c_void_p(), c_void_p()
    ran, released = threading.Event(), threading.Event()
    job = Job(lambda user: ran.set())
    release = Job(lambda user: released.set())
    never = Job(lambda user: sys.exit("a cancelled job ran"))
    detent.detent_scheduler_create(None, byref(scheduler))
    detent.detent_scheduler_schedule_after(scheduler, 20_000_000, job, None, release, None)
    detent.detent_scheduler_schedule_after(scheduler, 2**62, never, None, Job(), byref(timer))
    assert detent.detent_timer_cancel(timer) == OK
    detent.detent_timer_free(timer)
    assert ran.wait(30) and released.wait(30)
    detent.detent_scheduler_destroy(scheduler)
    print("the job has run after 20 ms")


def main():
    detent = load(sys.argv[1])
    print("detent", detent.detent_version().decode())
    run_wheel(detent)
    run_scheduler(detent)


if __name__ == "__main__":
    main()
