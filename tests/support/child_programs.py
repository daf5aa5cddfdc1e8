"""Functions for tests that start programs."""

import ctypes
import random
import signal
import socket
import time


def free_port():
    """A free port for a program that cannot choose one itself. It is below the ports that Linux
    gives to outgoing connections, because parallel tests open thousands of these."""
    while True:
        port = random.randrange(10_000, 32_768)
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            continue


def die_with_parent():
    """For a child before it executes its program: the child is killed if the test dies."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def wait_until(is_so, seconds, what):
    limit = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > limit:
            raise TimeoutError(f"waited {seconds} s for: {what}")
        time.sleep(0.02)
