#!/usr/bin/env python3
"""Runs the commands of the guides, page by page, each page with its own server. Compares the
output with the output that the page shows.

A ```console block is a session. One shell runs all lines of a page that begin with `$ `; the
lines after a command are its output. Numbers, times and tokens may differ, and `…` matches any
text. Arguments: the program, the build folder and the root of the tree. With --write, the real
output replaces the output in the pages.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from child_programs import free_port  # noqa: E402: found only now

PROGRAM, BUILD, ROOT = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
WRITE = "--write" in sys.argv
PAGES = [*sorted((ROOT / "docs/guides/applications").glob("*.md")),
         ROOT / "docs/guides/migrating.md", ROOT / "docs/guides/sinks.md"]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def sessions(text):
    """The commands of each block, with the output that the page shows."""
    for block in BLOCK.findall(text):
        session = []
        for line in block.replace("\\\n", "\\\0").splitlines():
            if line.startswith("$ "):
                session.append([line[2:].replace("\0", "\n"), ""])
            elif session:
                session[-1][1] += line + "\n"
        yield session


def shape(output):
    """The part of an output that is the same in each run."""
    output = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)", "TIME", output)
    output = re.sub(r"\d+(?:\.\d+)?", "N", output)
    output = re.sub(r"\bN(?:us|s)\b", "Nms", output)
    return [re.sub(r"\s+", " ", line).strip() for line in output.strip().splitlines()]


def agrees(shown, printed):
    shown, printed = shape(shown), shape(printed)
    if "…" in shown:  # alone on a line, it matches any number of lines
        begin, end = shown[:shown.index("…")], shown[shown.index("…") + 1:]
        kept = printed[len(printed) - len(end):] if end else []
        return agrees("\n".join(begin + end), "\n".join(printed[:len(begin)] + kept))
    return len(shown) == len(printed) and all(
        re.fullmatch(".*".join(map(re.escape, line.split("…"))), other)
        for line, other in zip(shown, printed))


class Server:
    """A server with the sink `mail`, which is a Redis that a page may start."""

    def __init__(self, folder):
        self.redis = str(free_port())
        sinks = pathlib.Path(folder, "sinks")
        sinks.write_text(f"mail redis://127.0.0.1:{self.redis}/mail\n", "utf-8")
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", f"{folder}/data", "--http", "127.0.0.1:0",
             "--beanstalk", "127.0.0.1:0", "--sinks", sinks],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        self.http = re.search(r"http://([\d.]+:\d+)", line)[1]
        self.beanstalk = re.search(r"beanstalk at ([\d.]+):(\d+)", line).groups()

    def stop(self):
        self.process.terminate()
        self.process.communicate()


def run(commands):
    """Runs all commands in one shell. Returns the output of each."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        script = ""
        for command in commands:
            command = (command.replace("build/release/", f"{BUILD}/")
                       .replace("localhost:7070", server.http)
                       .replace("6379", server.redis)
                       .replace("localhost/11300", "/".join(server.beanstalk)))
            script += f"{{ {command}\n}} 2>&1 </dev/null\nprintf '\\0'\n"
        shell = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, cwd=folder, timeout=100,
            check=False, env={"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
                              "HOME": folder, "DETENT_URL": f"http://{server.http}"})
        server.stop()
        if "redis-server" in script:  # stop it, because the page may have failed before its end
            subprocess.run(["redis-cli", "-p", server.redis, "shutdown", "nosave"],
                           capture_output=True, check=False)
        outputs = shell.stdout.split("\0")[:-1]
        outputs = [output.replace(server.http, "127.0.0.1:7070") for output in outputs]
        assert len(outputs) == len(commands), shell.stderr
        return outputs


def write(page, outputs):
    outputs = iter(outputs)

    def fill(block):
        lines = ["```console"]
        for line in re.findall(r"^\$ (?:[^\n]*\\\n)*[^\n]*\n", block[0], re.MULTILINE):
            lines.append((line + next(outputs)).rstrip("\n"))
        return "\n".join([*lines, "```"])
    page.write_text(BLOCK.sub(fill, page.read_text("utf-8")), "utf-8")


class Guides(unittest.TestCase):
    maxDiff = None

    def test_every_page_says_what_is_printed(self):
        for page in PAGES:
            with self.subTest(page.name):
                steps = [step for session in sessions(page.read_text("utf-8")) for step in session]
                self.assertTrue(steps, "the page has no commands")
                outputs = run([command for command, _ in steps])
                if WRITE:
                    write(page, outputs)
                    continue
                for (command, shown), printed in zip(steps, outputs):
                    self.assertTrue(agrees(shown, printed),
                                    f"$ {command}\nthe page says:\n{shown}\nbut it is:\n{printed}")

    def test_a_difference_is_found(self):
        text = "```console\n$ echo a 1 \\\n  b\na 7   b\n$ false; echo gone\n$ true\n```\n"
        (first, second, third), = sessions(text)
        outputs = run([first[0], second[0], third[0]])
        self.assertTrue(agrees(first[1], outputs[0]), outputs)
        self.assertFalse(agrees(second[1], outputs[1]), "output that the page does not show")
        self.assertTrue(agrees(third[1], outputs[2]))
        self.assertFalse(agrees("a N c", "a 1 b"))
        self.assertTrue(agrees("a … d\n…\nz", "a b c d\n1\n2\nz"))
        self.assertFalse(agrees("a\n…\nz", "a\nb"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
