#!/usr/bin/env python3
"""Runs each `curl` line of the pages about HTTP against a real server and compares the answers.

The answer must have the same status, members, types and words as the page shows. Ids, leases,
versions, times and numbers may differ. If a later line contains such a value from an answer above,
the test sends the real value of the server instead.

Each page runs on a new server, line by line. The answer to the last line of a block is in the next
block. The arguments are the program and the pages.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

PROGRAM, PAGES = sys.argv[1], sys.argv[2:]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
OWN_TO_SERVER = ("id", "lease", "cursor", "etag", "location")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n", re.M | re.S)


def steps(page):
    """Yields (curl line, shown answer or None) in the order of the page."""
    blocks = list(FENCE.finditer(page))
    for block, following in zip(blocks, blocks[1:] + [None]):
        if block[1] != "sh":
            continue
        lines = block[2].replace("\\\n", " ").splitlines()
        lines = [line for line in lines if line.startswith("curl ")]
        is_next = following and not page[block.end():following.start()].strip()
        answer = following[2] if is_next and following[1] != "sh" else None
        for line in lines:
            yield line, answer if line is lines[-1] else None


def split_answer(shown):
    """Splits a shown answer into status, headers and body. Status and headers may be missing."""
    status, headers = None, {}
    lines = shown.splitlines()
    if match := re.match(r"(?:HTTP/1\.1 )?(\d{3}) ", lines[0]):
        status = int(match[1])
        lines = lines[1:]
        while lines and (header := re.match(r"([\w-]+): (.*)", lines[0])):
            headers[header[1].lower()] = header[2]
            lines = lines[1:]
    return status, headers, json.loads("\n".join(lines))


class Page(unittest.TestCase):
    """The run of one page. `learned` maps a value in the page to the real value of the server."""

    def __init__(self, path):
        super().__init__("runs_as_shown")
        self.path = path
        self.learned = {}

    def runs_as_shown(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        server = subprocess.Popen(
            [PROGRAM, "serve", "--data", folder, "--http", "127.0.0.1:0", "--beanstalk", "off"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        address = re.search(r"http://([\d.:]+)", server.stdout.readline())[1]
        with open(self.path, encoding="utf-8") as file:
            story = list(steps(file.read()))
        self.assertTrue(story, "the page has no curl lines")
        for line, shown in story:
            with self.subTest(line):
                self.run_line(line, shown, address)

    def run_line(self, line, shown, address):
        arguments = shlex.split(self.as_learned(line), comments=True)
        arguments = [word.replace("localhost:7070", address) for word in arguments]
        run = subprocess.run([*arguments, "-sSi", "--max-time", "30"], capture_output=True,
                             text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        head, _, body = run.stdout.partition("\n\n")
        status = int(head.split()[1])
        if shown is None:
            self.assertIn(status, range(200, 300), run.stdout)
            return
        shown_status, shown_headers, shown_body = split_answer(shown)
        self.assertEqual(status, shown_status or 200, run.stdout)
        headers = dict(re.findall(r"^([\w-]+): (.*)$", head.lower(), re.M))
        for name, value in shown_headers.items():
            self.assertIn(name, headers, head)
            self.compare(value, headers[name], name)
        self.compare(shown_body, json.loads(body), "")

    def as_learned(self, text):
        for shown, real in self.learned.items():
            text = re.sub(rf"(?<![\w-]){re.escape(shown)}(?![\w-])", real, text)
        return text

    def compare(self, shown, real, name):
        self.assertEqual(type(shown), type(real), f"{name}: {shown} is {real}")
        if isinstance(shown, dict):
            self.assertEqual(sorted(shown), sorted(real), name)
            for key, value in shown.items():
                self.compare(value, real[key], key)
        elif isinstance(shown, list):
            if name != "lateness_counts":  # its length depends on the latest task
                self.assertLessEqual(len(shown), len(real), name)
            for value, other in zip(shown, real):
                self.compare(value, other, name)
        elif isinstance(shown, str):
            self.compare_text(shown, real, name)
        elif isinstance(shown, bool) or name == "status":
            self.assertEqual(shown, real, name)

    def compare_text(self, shown, real, name):
        if TIME.fullmatch(shown):
            self.assertRegex(real, TIME, name)
        else:
            if name in OWN_TO_SERVER:
                self.learned.setdefault(shown.strip('"'), real.strip('"'))
            self.assertEqual(self.as_learned(shown), real, name)


if __name__ == "__main__":
    suite = unittest.TestSuite(Page(path) for path in PAGES)
    sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())
