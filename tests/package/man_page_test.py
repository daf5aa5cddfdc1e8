#!/usr/bin/env python3
"""Compares the documentation of the command line with the program.

docs/reference/detent.1 must be the output of `detent man` and have all options of --help.
docs/reference/cli.md must have exactly the commands and options of the program.

The arguments are the program and the folder of both pages. To update the page:
build/release/detent man >docs/reference/detent.1
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

PROGRAM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
VARIABLE = re.compile(r"\bDETENT_[A-Z_]+\b")


def output_of(*arguments):
    environment = {name: value for name, value in os.environ.items() if "DETENT" not in name}
    return subprocess.run([PROGRAM, *arguments], env=environment, text=True, capture_output=True,
                          check=True).stdout


def options_of(text):
    """The options in the list of a --help, without those in its examples."""
    return set(re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", text, re.MULTILINE))


def commands_of(text):
    return set(re.findall(r"^  ([a-z][a-z-]*) ", text.split("\nExample")[0], re.M))


def all_commands():
    """The full names of all commands, such as "put" and "cron next"."""
    commands = set()
    for command in commands_of(output_of("--help")):
        parts = commands_of(output_of(command, "--help"))
        commands |= {f"{command} {part}" for part in parts} if parts else {command}
    return commands


PAGE = (FOLDER / "detent.1").read_text(encoding="utf-8")
MANUAL = PAGE.replace("\\-", "-")
REFERENCE = (FOLDER / "cli.md").read_text(encoding="utf-8")
COMMANDS = all_commands()


def section(name):
    """The text of a section (.SH or .SS) of the page."""
    match = re.search(rf"^\.S[HS] {name}\n(.*?)(?=^\.S[HS] |\Z)", MANUAL, re.M | re.S)
    return match[1] if match else ""


class ManPage(unittest.TestCase):
    def test_is_what_the_program_prints(self):
        self.assertEqual(PAGE, output_of("man"), "make it anew: see the top of this file")

    def test_lists_the_commands_the_program_has(self):
        listed = set(re.findall(r'^\.BI? "?([a-z][a-z-]*(?: [a-z]+)?)\b', section("COMMANDS"),
                                re.M))
        self.assertEqual(listed, COMMANDS)
        self.assertGreater(len(COMMANDS), 5)

    def test_lists_the_options_of_every_command(self):
        common = set(OPTION.findall(section("Commands to a server")))
        for command in sorted(COMMANDS):
            with self.subTest(command):
                options = options_of(output_of(*command.split(), "--help"))
                listed = {"--help"} | set(OPTION.findall(section(command)))
                if "--server" in options:
                    listed |= common
                self.assertEqual(options - listed, set())

    def test_names_the_variables_the_program_reads(self):
        read = set(VARIABLE.findall(output_of("--help")))
        for command in COMMANDS:
            read |= set(VARIABLE.findall(output_of(*command.split(), "--help")))
        self.assertEqual(set(VARIABLE.findall(section("ENVIRONMENT"))), read)


class Reference(unittest.TestCase):
    def test_names_every_option_and_variable_and_no_other(self):
        known = set(VARIABLE.findall(MANUAL)) | {"--help", "--version"}
        for command in COMMANDS:
            known |= options_of(output_of(*command.split(), "--help"))
        named = set(OPTION.findall(REFERENCE)) | set(VARIABLE.findall(REFERENCE))
        self.assertEqual(known - named - {"--version"}, set(), "missing in cli.md")
        self.assertEqual(named - known, set(), "no option of the program")

    def test_names_every_command(self):
        for command in COMMANDS:
            with self.subTest(command):
                name, *part = command.split()
                self.assertTrue(re.search(rf"\bdetent {name}\b", REFERENCE), "missing in cli.md")
                self.assertTrue(all(re.search(rf"`[^`\n]*\b{word}\b", REFERENCE) for word in part))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
