"""Runs the example of a client with a real server. The examples of all clients must print the same,
work on due tasks, and stop at SIGTERM.

    DETENT_BINARY=… PYTHONPATH=clients/python python3 examples_test.py COMMAND…
"""

import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "python"))

import detent  # noqa: E402  (needs the path above, as the next one)
from real_server import RealServer  # noqa: E402

LINES = [r"o-\d+-1 is paid: its cancellation is cancelled", r"o-\d+-2 is due: cancelled",
         r"working until SIGTERM"]


class Examples(unittest.TestCase):
    def run_once(self, command):
        example = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(example.kill)
        for line in LINES:
            self.assertRegex(example.stdout.readline().strip(), f"^{line}$")
        example.send_signal(signal.SIGTERM)
        self.assertEqual(example.communicate(timeout=60)[0], "stopped\n")
        self.assertEqual(example.returncode, 0)

    def test_prints_works_and_stops(self):
        with RealServer() as server:
            for _ in range(2):  # the second run finds the keys of the first run
                self.run_once([*COMMAND, server.url])
            with detent.Client(server.url) as client:
                self.assertEqual(client.list(queue="orders").tasks, [])


if __name__ == "__main__":
    COMMAND = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
