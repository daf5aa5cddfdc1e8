#!/usr/bin/env python3
"""Runs `detent top` against a real server at a pseudo-terminal.

Checks its output, its reaction to keys and to a new size, and that it restores the terminal after
q, SIGINT and SIGTERM.

The argument is the program.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

PROGRAM = sys.argv[1]
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


class Server:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", self.folder.name, "--http", "127.0.0.1:0",
             "--beanstalk", "off"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = re.search(r"http://[\d.:]+", self.process.stdout.readline())[0]

    def put(self, queue):
        subprocess.run([PROGRAM, "put", queue, "--server", self.url], check=True,
                       stdout=subprocess.DEVNULL)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()


class Terminal:
    """Runs `detent top` in a terminal of 100 columns and 20 lines."""

    def __init__(self, *arguments):
        self.ours, self.theirs = pty.openpty()
        self.resize(20, 100)
        self.before = termios.tcgetattr(self.theirs)
        self.heard = ""
        self.process = subprocess.Popen(
            [PROGRAM, "top", *arguments], stdin=self.theirs, stdout=self.theirs,
            stderr=self.theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, rows, columns):
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.ours, keys.encode())

    def read_until(self, pattern):
        """Waits for a text on the screen. Fails after half a minute."""
        give_up = time.monotonic() + 30
        while not (match := re.search(pattern, self.heard, re.S)):
            if time.monotonic() > give_up:
                raise AssertionError(f"no {pattern!r}; last was {self.heard[-500:]!r}")
            if select.select([self.ours], [], [], 0.1)[0]:
                self.heard += os.read(self.ours, 65536).decode()
        self.heard = self.heard[match.end():]
        return match[0]

    def is_as_before(self):
        return termios.tcgetattr(self.theirs) == self.before

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


class Top(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.server.put("mail")
        cls.server.put("orders")
        cls.server.put("orders")

    def top(self, *arguments):
        terminal = Terminal("--server", self.server.url, *arguments)
        self.addCleanup(terminal.close)
        return terminal

    def expect_given_back(self, terminal):
        terminal.read_until(re.escape(LEAVE))
        self.assertEqual(terminal.process.wait(timeout=30), 0)
        self.assertTrue(terminal.is_as_before())

    def test_shows_the_server_sorts_by_keys_and_quits(self):
        terminal = self.top("--interval", "100ms")
        terminal.read_until(re.escape(ENTER))
        terminal.read_until(r"ready 3 .*READY\*.*\norders .*\nmail .*q quits")
        self.assertFalse(terminal.is_as_before(), "keys are echoed")
        terminal.type("n")
        terminal.read_until(r"QUEUE\*.*\nmail .*\norders ")
        self.server.put("mail")
        terminal.read_until(r"ready 4 ")
        terminal.type("\x1b[A")  # an arrow is not the escape key
        terminal.type("q")
        self.expect_given_back(terminal)

    def test_follows_the_size_of_the_terminal(self):
        terminal = self.top("--interval", "1h")
        terminal.read_until("q quits")
        terminal.resize(3, 40)
        os.kill(terminal.process.pid, signal.SIGWINCH)
        shown = terminal.read_until(r"\x1b\[H.*?\x1b\[J")
        self.assertEqual(shown.count("\n"), 2)
        terminal.type("q")
        self.expect_given_back(terminal)

    def test_gives_the_terminal_back_after_ctrl_c(self):
        terminal = self.top()
        terminal.read_until("q quits")
        terminal.type("\x03")
        self.expect_given_back(terminal)

    def test_gives_the_terminal_back_after_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                terminal = self.top()
                terminal.read_until("q quits")
                os.kill(terminal.process.pid, number)
                self.expect_given_back(terminal)

    def test_a_server_that_is_not_there_leaves_the_terminal_alone(self):
        terminal = Terminal("--server", "http://127.0.0.1:1")
        self.addCleanup(terminal.close)
        terminal.read_until("detent: ")
        self.assertEqual(terminal.process.wait(timeout=30), 1)
        self.assertTrue(terminal.is_as_before())

    def test_lines_where_there_is_no_terminal(self):
        run = subprocess.Popen(
            [PROGRAM, "top", "--server", self.server.url, "--interval", "100ms"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        for _ in range(3):
            self.assertRegex(run.stdout.readline(), r"^up .* ready \d+ .* accepted/s ")
        run.send_signal(signal.SIGINT)
        self.assertNotIn("\x1b", run.communicate()[0])
        self.assertEqual(run.returncode, 0)

    def test_once_is_one_look(self):
        arguments = [PROGRAM, "top", "--once", "--server", self.server.url]
        text = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
        self.assertRegex(text, r"\norders +0 +2 ")
        answer = subprocess.run([*arguments, "--json"], capture_output=True, text=True, check=True)
        self.assertIn("lateness_counts", json.loads(answer.stdout))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
