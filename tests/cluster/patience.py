"""How long a test waits for processes that share the machine with others.

A second in which they got a tenth of the processor time that they wanted counts as a tenth of one:
so what is waited for may take as much longer as the machine is overloaded, and no longer. The
kernel tells of each thread how long it ran and how long it was ready to run and did not
(/proc/PID/task/TID/schedstat, in ns); where it does not tell, a second is a second.
"""

import glob
import pathlib
import time


def scheduled(processes):
    """By thread of these processes: how long it has run, and waited to."""
    times = {}
    for process in processes:
        for path in glob.glob(f"/proc/{process}/task/*/schedstat"):
            try:
                ran, waited, _ = pathlib.Path(path).read_text(encoding="ascii").split()
            except (OSError, ValueError):
                continue  # it has ended
            times[path] = int(ran), int(waited)
    return times


def share_of(before, after):
    """Of the processor time that they wanted in between. Who wanted none was kept from nothing."""
    ran = sum(after[thread][0] - before.get(thread, (0, 0))[0] for thread in after)
    waited = sum(after[thread][1] - before.get(thread, (0, 0))[1] for thread in after)
    return ran / (ran + waited) if ran + waited > 0 else 1


class Patience:
    def __init__(self, seconds, processes, clock=time.monotonic, look=scheduled):
        """`processes` tells whose time it is, whenever it is asked."""
        self.left = seconds
        self.processes = processes
        self.clock = clock
        self.look = look
        self.at = clock()
        self.times = look(processes())

    def is_over(self):
        """To be asked again and again: what has passed since the last time counts alike."""
        at, times = self.clock(), self.look(self.processes())
        self.left -= (at - self.at) * share_of(self.times, times)
        self.at, self.times = at, times
        return self.left < 0
