"""What tests that start programs have in common."""

import ctypes
import random
import signal
import socket
import time


def free_port():
    """A port for a program that cannot choose one itself. Nobody listens on it just now, and it is
    below those that Linux gives to connections, of which tests open thousands meanwhile."""
    while True:
        port = random.randrange(10_000, 32_768)
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            continue


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
