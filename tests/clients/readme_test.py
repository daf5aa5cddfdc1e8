"""Runs the program in the README of a client, with a real server. The program is a new user's: it
has its own folder, and finds the client in the clone in the way that the README shows.

    DETENT_BINARY=… PYTHONPATH=clients/python python3 readme_test.py python|typescript|go PROGRAM
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "python"))

import detent  # noqa: E402  (needs the path above, as the next one)
from real_server import RealServer  # noqa: E402

CLIENTS = pathlib.Path(__file__).resolve().parents[2] / "clients"
LANGUAGE, PROGRAM = sys.argv[1:3]
FILES = {"python": "app.py", "typescript": "app.mjs", "go": "main.go"}
BLOCK = re.compile(r"^```(?:python|ts|go)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def prepare(folder):
    """Makes the client known to the program in `folder`. Returns the command that runs it."""
    if LANGUAGE == "typescript":  # as `npm install CLONE/clients/typescript` does
        (folder / "node_modules").mkdir()
        (folder / "node_modules/detent").symlink_to(CLIENTS / "typescript")
    if LANGUAGE == "go":
        for words in (["mod", "init", "app"], ["mod", "edit", f"-replace=detent={CLIENTS / 'go'}"],
                      ["get", "detent"], ["build", "-o", "app", "."]):
            subprocess.run([PROGRAM, *words], cwd=folder, check=True, capture_output=True)
        return ["./app"]
    return [PROGRAM, FILES[LANGUAGE]]


class Readme(unittest.TestCase):
    def test_its_program_runs(self):
        text = (CLIENTS / LANGUAGE / "README.md").read_text("utf-8")
        program, by_hand = BLOCK.findall(text)
        # The second block continues the first. Its place is before the task of the first block.
        first_task = re.search(r"^.*1001", program, re.MULTILINE).start()
        program = program[:first_task] + by_hand + program[first_task:]
        with RealServer() as server, tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / FILES[LANGUAGE]).write_text(
                program.replace("http://127.0.0.1:7070", server.url), "utf-8")
            command = prepare(folder)
            with detent.Client(server.url) as client:
                client.schedule("orders", "due, for the lease by hand")
                running = subprocess.Popen(
                    command, cwd=folder, stdout=subprocess.PIPE, text=True,
                    env=os.environ | {"PYTHONUNBUFFERED": "1"})
                self.addCleanup(running.kill)
                self.assertRegex(running.stdout.readline(), "1001.* was not paid")
                running.send_signal(signal.SIGTERM)
                self.assertEqual(running.communicate(timeout=60)[0], "")
                self.assertEqual(running.returncode, 0)
                self.assertEqual(client.list(queue="orders").tasks, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
