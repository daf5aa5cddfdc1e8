"""Waits for processes that share the machine with others.

The time limit of a wait depends on the load of the machine: if the processes got a tenth of the
processor time that they wanted, a second counts as a tenth of a second. The limit then lasts ten
times as long. For each thread, the kernel reports how long it ran, and how long it was ready but
did
not run (/proc/PID/task/TID/schedstat, in ns). If the kernel does not report this, each second
counts
fully.
"""

import glob
import pathlib
import time


def scheduled(processes):
    """Returns for each thread of the processes how long it ran and how long it waited to run."""
    times = {}
    for process in processes:
        for path in glob.glob(f"/proc/{process}/task/*/schedstat"):
            try:
                ran, waited, _ = pathlib.Path(path).read_text(encoding="ascii").split()
            except (OSError, ValueError):
                continue  # the thread has ended
            times[path] = int(ran), int(waited)
    return times


def share_of(before, after):
    """Returns the share of the wanted processor time that the threads got between two readings. It
    is 1 if they wanted none."""
    ran = sum(after[thread][0] - before.get(thread, (0, 0))[0] for thread in after)
    waited = sum(after[thread][1] - before.get(thread, (0, 0))[1] for thread in after)
    return ran / (ran + waited) if ran + waited > 0 else 1


class Patience:
    def __init__(self, seconds, processes, clock=time.monotonic, look=scheduled):
        """`processes` is called at each check and returns the ids of the processes."""
        self.left = seconds
        self.processes = processes
        self.clock = clock
        self.look = look
        self.at = clock()
        self.times = look(processes())

    def is_over(self):
        """Call this repeatedly: the time since the last call is weighted as one span."""
        at, times = self.clock(), self.look(self.processes())
        self.left -= (at - self.at) * share_of(self.times, times)
        self.at, self.times = at, times
        return self.left < 0
