"""Runs the examples of the three clients, each with its own real server. All must print the same,
work on due tasks, and stop at SIGTERM.

    DETENT_BINARY=… PYTHONPATH=clients/python python3 examples_test.py C++-EXAMPLE [NODE]
"""

import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "python"))

import detent  # noqa: E402  (needs the path above, as the next one)
from real_server import RealServer  # noqa: E402

CLIENTS = pathlib.Path(__file__).resolve().parents[2] / "clients"
LINES = [r"o-\d+-1 is paid: its cancellation is cancelled", r"o-\d+-2 is due: cancelled",
         r"working until SIGTERM"]


class Examples(unittest.TestCase):
    def check(self, *command):
        with RealServer() as server:
            for _ in range(2):  # the second run finds the keys of the first run
                self.run_once([*map(str, command), server.url])
            with detent.Client(server.url) as client:
                self.assertEqual(client.list(queue="orders").tasks, [])

    def run_once(self, command):
        example = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(example.kill)
        for line in LINES:
            self.assertRegex(example.stdout.readline().strip(), f"^{line}$")
        example.send_signal(signal.SIGTERM)
        self.assertEqual(example.communicate(timeout=60)[0], "stopped\n")
        self.assertEqual(example.returncode, 0)

    def test_python(self):
        self.check(sys.executable, CLIENTS / "python/examples/orders.py")

    def test_typescript(self):
        if NODE is None or not (CLIENTS / "typescript/dist/index.js").exists():
            self.skipTest("clients/typescript is not compiled")
        self.check(NODE, CLIENTS / "typescript/examples/orders.mjs")

    def test_cpp(self):
        self.check(PROGRAM)


if __name__ == "__main__":
    PROGRAM, NODE = sys.argv[1], (sys.argv + [None])[2]
    unittest.main(argv=sys.argv[:1])
