"""What tests that start programs have in common."""

import ctypes
import signal
import socket
import time


def free_port():
    """A port that nobody listens on just now. Another may take it before it is used."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def die_with_parent():
    """In a child before it becomes its program: it is killed when the test is."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def wait_until(is_so, seconds, what):
    limit = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > limit:
            raise TimeoutError(f"waited {seconds} s in vain: {what}")
        time.sleep(0.02)
