#!/usr/bin/env python3
"""Checks the commands and requests in the documentation. Each `detent …` line of a code block
must name a command and options that its --help lists. Each curl must use a route of the OpenAPI
document. Each `./dev …` must use a word that ./dev has. Other tests check the answers.

Arguments: the program, the OpenAPI document and the root of the tree.
"""

import functools
import json
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

PROGRAM, OPENAPI, ROOT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve()

BLOCK = re.compile(r"^ *```(?:sh|console|bash)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
ROUTES = json.loads(pathlib.Path(OPENAPI).read_text("utf-8"))["paths"]


@functools.cache
def help_of(*command):
    run = subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else ""


def subcommands(text):
    return re.findall(r"^  ([a-z][a-z-]*) ", text.split("\nExample")[0], re.MULTILINE)


def lines_of(text):
    """All lines of `sh` blocks, and the lines after `$` of `console` blocks."""
    for block in BLOCK.findall(text):
        block = block.replace("\\\n", " ")
        is_console = re.search(r"^ *\$ ", block, re.MULTILINE)
        for line in block.splitlines():
            line = line.strip()
            if is_console and not line.startswith("$ "):
                continue
            yield line.removeprefix("$ ")


def words_of(line):
    """The commands of a line, each as a list of words. Empty if the line is not a command line."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>()")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:  # a quoted text continues in the next line
        return
    command = []
    for word in words:
        if word and set(word) <= set("|;&()"):
            yield command
            command = []
        else:
            command.append(word)
    yield command


def wrong_in_detent(words):
    command, text = [], help_of()
    for word in words:
        if word in ("<", ">", ">>") or re.fullmatch(r"\d+\.\d+\.\d+", word):  # output
            break
        if re.fullmatch(r"--?[a-z][\w-]*(=.*)?", word):
            option = word.partition("=")[0]
            if not re.search(rf"(?:^| |,){re.escape(option)}\b", text, re.MULTILINE):
                yield f"detent {' '.join(command)} has no option {option}"
        elif subcommands(text):
            if word not in subcommands(text):
                yield f"there is no command: detent {' '.join([*command, word])}"
                return
            command.append(word)
            text = help_of(*command)


def wrong_in_curl(words):
    server = re.compile(r"(?:http://)?(?:localhost|127\.0\.0\.1):7070")
    urls = [word for word in words if server.match(word)]
    method = "POST" if {"-d", "--data", "--data-binary", "-T"} & set(words) else "GET"
    if "-X" in words:
        method = words[words.index("-X") + 1]
    for url in urls:
        path = re.sub(r"^(?:https?://)?[^/]*", "", url).partition("?")[0] or "/"
        parts = path.strip("/").split("/")
        for route, verbs in ROUTES.items():
            pattern = route.strip("/").split("/")
            fits = len(parts) == len(pattern) and all(
                own == part or own.startswith("{") for own, part in zip(pattern, parts))
            if fits and method.lower() in verbs:
                break
        else:
            if path != "/":
                yield f"there is no route {method} {path}"


def wrong_in_dev(words):
    usage = (ROOT / "dev").read_text("utf-8")
    for word in words[:1]:
        if not re.search(rf"^#? *(?:\./dev )?{word}\b", usage, re.MULTILINE):
            yield f"./dev knows no {word}"


def wrong_in(line):
    for words in words_of(line):
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words = words[1:]
        if not words:
            continue
        program, rest = words[0], words[1:]
        if program in ("detent", "build/release/detent"):
            yield from wrong_in_detent(rest)
        elif program == "curl":
            yield from wrong_in_curl(rest)
        elif program == "./dev":
            yield from wrong_in_dev(rest)


class Commands(unittest.TestCase):
    maxDiff = None

    def test_every_line_of_the_documentation(self):
        is_command = re.compile(r"(?:[A-Z_]+=\S* )*(?:build/release/)?detent |curl |\./dev ")
        pages = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
        wrong, seen = [], 0
        for page in pages:
            for line in lines_of(page.read_text("utf-8")):
                seen += bool(is_command.match(line))
                wrong += [f"{page.relative_to(ROOT)}: {one}" for one in wrong_in(line)]
        self.assertGreater(seen, 50, "too few command lines were found")
        self.assertEqual([], wrong)

    def test_wrong_lines_are_found(self):
        text = ("```sh\ndetent leese mail\ndetent put mail 1 --delai 2s | detent stats --jsn\n"
                "curl -s localhost:7070/v1/task -d '{}'\ncurl -X PUT localhost:7070/v1/tasks/7\n"
                "./dev tst\nDETENT_URL=x detent cron naxt 1\n```\n"
                "```console\n$ detent schedule get s --no\nan answer: detent nothing\n```\n")
        found = [one for line in lines_of(text) for one in wrong_in(line)]
        self.assertEqual(found, [
            "there is no command: detent leese", "detent put has no option --delai",
            "detent stats has no option --jsn", "there is no route POST /v1/task",
            "there is no route PUT /v1/tasks/7", "./dev knows no tst",
            "there is no command: detent cron naxt", "detent schedule get has no option --no"])
        right = ("```sh\ndetent put mail '{\"a\": 1}' --delay=2s --json > x\n"
                 "curl -s -X DELETE localhost:7070/v1/tasks/ID\n"
                 "curl -s localhost:7070/v1/tasks?limit=1\n"
                 "detent cron next '0 9 * * *' --zone UTC\n./dev test\n```\n")
        self.assertEqual([], [one for line in lines_of(right) for one in wrong_in(line)])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
