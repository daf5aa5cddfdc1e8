#!/usr/bin/env python3
"""Holds docs/reference/detent.1 to the program: every command, option and variable that `--help`
prints is in the manual page under its command, and the page names none the program does not know.

Called with the program and the page. Leaves the environment's DETENT_… out, which --help may show.
"""

import os
import re
import subprocess
import sys
import unittest

PROGRAM, PAGE = sys.argv[1:3]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
VARIABLE = re.compile(r"\bDETENT_[A-Z_]+\b")


def help_of(*command):
    environment = {name: value for name, value in os.environ.items() if "DETENT" not in name}
    return subprocess.run([PROGRAM, *command, "--help"], env=environment, text=True,
                          capture_output=True, check=True).stdout


def options_of(text):
    """The options a --help lists, not those its examples use."""
    return set(re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", text, re.MULTILINE))


def commands_of(text):
    listed = text.split("Subcommands:")[1].split("\n\n")[0] if "Subcommands:" in text else ""
    return set(re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE))


def all_commands():
    """As they are typed: "put", "cron next"."""
    commands = set()
    for command in commands_of(help_of()):
        parts = commands_of(help_of(command))
        commands |= {f"{command} {part}" for part in parts} if parts else {command}
    return commands


with open(PAGE, encoding="utf-8") as page:
    MANUAL = page.read().replace("\\-", "-")
COMMANDS = all_commands()


def section(name):
    """The text of a .SH or .SS of the page up to the next one."""
    match = re.search(rf"^\.S[HS] {name}\n(.*?)(?=^\.S[HS] |\Z)", MANUAL, re.M | re.S)
    return match[1] if match else ""


class ManPage(unittest.TestCase):
    def test_lists_the_commands_the_program_has(self):
        listed = set(re.findall(r'^\.BI? "?([a-z]+(?: [a-z]+)?)\b', section("COMMANDS"), re.M))
        self.assertEqual(listed, COMMANDS)
        self.assertGreater(len(COMMANDS), 5)

    def test_lists_the_options_of_every_command(self):
        for command in sorted(COMMANDS):
            with self.subTest(command):
                listed = {"--help"} | set(OPTION.findall(section(command)))
                if command.split()[0] not in ("serve", "check", "cron"):  # these ask no server
                    listed |= set(OPTION.findall(section("Commands to a server")))
                self.assertEqual(listed, options_of(help_of(*command.split())))

    def test_names_the_variables_the_program_reads(self):
        read = set(VARIABLE.findall(help_of()))
        for command in COMMANDS:
            read |= set(VARIABLE.findall(help_of(*command.split())))
        self.assertEqual(set(VARIABLE.findall(section("ENVIRONMENT"))), read)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
