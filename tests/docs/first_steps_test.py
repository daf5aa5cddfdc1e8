#!/usr/bin/env python3
"""Runs the first program and the sessions with a server that README.md and docs/start.md show, and
compares the output with the pages. The library part of docs/start.md has its own test,
tests/package/library_alone_test.py.

Numbers and times may differ. A delay of 10 s is made shorter. Arguments: the program, the compiler
and the root of the tree.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

PROGRAM, COMPILER, ROOT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve()

os.environ["DETENT_BINARY"] = PROGRAM
sys.path.insert(0, str(ROOT / "tests/clients/python"))
from real_server import RealServer  # noqa: E402  (needs the two lines above)

BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


def blocks(page, heading):
    """The (language, text) of each block below a heading."""
    section = (ROOT / page).read_text("utf-8").split(f"\n{heading}\n")[1]
    section = re.split(r"^#{1,%d} " % heading.index(" "), section, flags=re.MULTILINE)[0]
    return [(language, textwrap.dedent(text)) for _, language, text in BLOCK.findall(section)]


def shape(answer):
    """The part of an answer that is the same in each run."""
    return re.sub(r"\d[\d:.TZ-]*|\s", lambda digits: "" if digits[0].isspace() else "N", answer)


class Session:
    """A shell and a server. Commands use ids and leases of earlier answers."""

    def __init__(self, test):
        self.server = RealServer()
        test.addCleanup(self.server.close)
        self.id = self.lease = None

    def run(self, command):
        if command.startswith("kill -9 $(pidof detent)"):
            self.server.kill()
            self.server.start()
            return ""
        command = command.replace("localhost:7070", self.server.url).replace("10s", "1s")
        command = command.replace("build/release/", "").replace("tasks/ID", f"tasks/{self.id}")
        command = re.sub(r'"leases":\[[^]]*\]', f'"leases":["{self.lease}"]', command)
        path = f"{pathlib.Path(PROGRAM).resolve().parent}:{os.environ['PATH']}"
        answer = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, check=True,
            env=os.environ | {"DETENT_URL": self.server.url, "PATH": path}).stdout
        self.id = self.id or next(iter(re.findall(r'"id":"(\d+)"', answer)), None)
        self.lease = next(iter(re.findall(r'"lease":"([\d-]+)"', answer)), self.lease)
        return answer

    def run_lines(self, text):
        return [self.run(line) for line in text.splitlines() if not line.startswith("#")]


class FirstSteps(unittest.TestCase):
    def test_the_first_program_prints_what_the_page_shows(self):
        (_, program), (_, session), *_ = blocks("README.md", "### A complete program")
        command, shown = session.removeprefix("$ ").split("\n", 1)
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "app.cc").write_text(program, "utf-8")
            pathlib.Path(folder, "include").symlink_to(ROOT / "include")
            printed = subprocess.run(
                ["sh", "-c", command.replace("g++", COMPILER)], cwd=folder, capture_output=True,
                text=True, check=True).stdout
        self.assertEqual(printed, shown)

    def test_the_session_of_the_readme(self):
        session = Session(self)
        (_, shown), (_, by_program), *_ = blocks("README.md", "### A complete session")
        for step in re.split(r"^\$ ", shown, flags=re.MULTILINE)[1:]:
            command, answer = step.split("\n", 1)
            self.assertEqual(shape(session.run(command)), shape(answer), command)
        put, leased = session.run_lines(by_program)
        self.assertIn("scheduled", put)
        self.assertIn("ada", leased)

    def test_the_session_of_the_start_page(self):
        session = Session(self)
        page = blocks("docs/start.md", "## The server in five minutes")
        (_, begin), (_, put), (_, shown_put), (_, cancel), (_, lease), (_, shown_lease), \
            (_, report), (_, kill), (_, by_program) = page
        self.assertEqual(begin, "./dev run\n")
        self.assertEqual(shape("".join(session.run_lines(put))), shape(shown_put))
        self.assertIn("cancelled", *session.run_lines(cancel))
        self.assertEqual(shape(*session.run_lines(lease)), shape(shown_lease))
        statuses = [json.loads(answer)["results"][0]["status"]
                    for answer in session.run_lines(report)]
        self.assertEqual(statuses, ["done", "conflict"])
        session.run_lines(put)
        session.run_lines(kill)
        self.assertEqual(shape(*session.run_lines(lease)), shape(shown_lease))
        self.assertIn("scheduled", session.run_lines(by_program)[-1])

    def test_a_difference_is_found(self):
        self.assertNotEqual(shape('{"id":"1","state":"ready"}'), shape('{"id":"2"}'))
        self.assertEqual(shape('{"at":"2026-11-24T11:43:35.757Z",\n"n":7}'),
                         shape('{"at":"2027-01-02T00:00:00.000Z","n":12}\n'))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
