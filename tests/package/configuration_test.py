#!/usr/bin/env python3
"""Compares docs/operating/configuration.md and packaging/detent.toml with the program.

The table of the page has exactly the settings of `detent serve`, each with its three names. The
example has exactly these settings, each with its description and default, and the program can read
the example.

The arguments are the program, the page and the example. With the fourth argument --write, the
script writes the table and the example again.
"""

import os
import re
import subprocess
import sys
import textwrap
import unittest

PROGRAM, PAGE, EXAMPLE = sys.argv[1:4]
EXAMPLE_HEAD = """\
# Settings of `detent serve`. Each line below shows the default of a setting, or the form of its
# value. To change a setting, remove the # before it. A variable (DETENT_LOG_LEVEL) takes precedence
# over this file, and a flag (--log-level) over both. `detent serve --config FILE --print-config`
# shows the settings in effect and their sources. The service reads this file as
# /etc/detent/detent.toml.
"""


def run(*arguments):
    environment = {name: value for name, value in os.environ.items() if "DETENT" not in name}
    return subprocess.run([PROGRAM, "serve", *arguments], env=environment, text=True,
                          capture_output=True, check=True).stdout


def settings():
    """Maps each name to the line that sets its default, or to None without a default."""
    lines = {}
    for line in run("--print-config").splitlines():
        unset = re.match(r"# ([\w-]+) is not set", line)
        if unset:
            lines[unset[1]] = None
        else:
            assignment = line.rsplit("#", 1)[0].rstrip()
            lines[assignment.split(" = ")[0]] = assignment
    return lines


def descriptions():
    """Maps each name to the form of its value and its description in --help."""
    # "  --name VALUE  description (default, variable)". The description may have several lines.
    found = re.findall(r"^  --([\w-]+)(?: (\S+))?\s+(.+(?:\n {3,}.+)*)", run("--help"), re.M)
    return {name: (value, re.sub(r" \([^()]*\)$", "", " ".join(text.split())))
            for name, value, text in found}


def table():
    rows = ["| in the file | flag | variable |", "|---|---|---|"]
    for name, assignment in settings().items():
        variable = "DETENT_" + name.upper().replace("-", "_")
        rows.append(f"| `{assignment or name + ' = …'}` | `--{name}` | `{variable}` |")
    return "\n".join(rows) + "\n"


def example():
    text = EXAMPLE_HEAD
    about = descriptions()
    for name, assignment in settings().items():
        value, what = about[name]
        text += "\n" + textwrap.fill(what[0].upper() + what[1:] + ".", 100, initial_indent="# ",
                                     subsequent_indent="# ") + "\n"
        text += f"#{assignment}\n" if assignment else f'#{name} = "{value}"\n'
    return text


def read(file):
    with open(file, encoding="utf-8") as opened:
        return opened.read()


TABLE = re.compile(r"^\| in the file .*?\n(?!\|)", re.M | re.S)


class Configuration(unittest.TestCase):
    maxDiff = None

    def test_the_page_has_the_settings_the_program_has(self):
        self.assertGreater(len(settings()), 10)
        self.assertEqual(TABLE.search(read(PAGE))[0], table(), "write it again with --write")

    def test_the_example_has_the_settings_the_program_has(self):
        self.assertEqual(read(EXAMPLE), example(), "write it again with --write")

    def test_the_example_can_be_read(self):
        printed = run("--print-config", "--config", EXAMPLE)
        self.assertEqual(printed, run("--print-config"))


if __name__ == "__main__":
    if sys.argv[4:] == ["--write"]:
        page = TABLE.sub(lambda _: table(), read(PAGE))
        for path, content in ((PAGE, page), (EXAMPLE, example())):
            with open(path, "w", encoding="utf-8") as opened:
                opened.write(content)
    else:
        unittest.main(argv=sys.argv[:1])
