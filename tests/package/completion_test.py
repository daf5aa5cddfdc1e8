#!/usr/bin/env python3
"""Lets bash, zsh and fish complete command lines with the scripts of `detent completion`.

The argument is the program. Each shell gets the same lines. zsh completes only at a terminal, so it
gets a pseudo-terminal.
"""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv[1]

# The typed line, completions that it must have, and completions that it must not have.
LINES = (
    ("detent sch", {"schedule"}, {"put"}),
    ("detent schedule tr", {"trigger"}, {"lease"}),
    ("detent --json sch", {"schedule"}, set()),
    ("detent put mail --de", {"--delay"}, {"--window"}),
    ("detent --ser", {"--server"}, {"--delay"}),
    ("detent list --state de", {"dead"}, {"ready"}),
    ("detent schedule put s --misfire o", {"once"}, {"all"}),
    ("detent serve --log-level w", {"warning"}, {"debug"}),
    ("detent restore ./dum", {"./dump.ndjson"}, set()),
    ("detent completion f", {"fish"}, {"bash"}),
    ("detent get --server ", set(), {"put", "--json"}),
    ("detent purge ma", {"mail"}, {"orders", "queues"}),
    ("detent put or", {"orders"}, {"mail"}),
    ("detent list --queue or", {"orders"}, {"mail"}),
    ("detent purge shop:u", {"shop:us"}, {"mail"}),
)
# Names that a shell must not expand or run.
ODD_QUEUES = ("x$(evil)", "x;evil")


def script_of(shell):
    return subprocess.run([PROGRAM, "completion", shell], capture_output=True, text=True,
                          check=True).stdout


def complete_in_bash(script, line, folder):
    words = line.split(" ")
    typed = " ".join(f"'{word}'" for word in words)
    code = (f"source {script}; cd {folder}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; "
            "_detent; printf '%s\\n' \"${COMPREPLY[@]}\"")
    return set(subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True,
                              check=True).stdout.split())


def complete_in_fish(script, line, folder):
    code = f"source {script}; cd {folder}; complete -C '{line}'"
    run = subprocess.run(["fish", "--no-config", "-c", code], capture_output=True, text=True,
                         check=True, env=os.environ | {"HOME": folder})
    return {entry.split("\t")[0] for entry in run.stdout.splitlines()}


class Zsh:
    """A zsh at a pseudo-terminal, into which the test types."""

    def __init__(self, script, folder):
        child, self.terminal = pty.fork()
        if child == 0:
            os.chdir(folder)
            os.environ.update(TERM="dumb", COLUMNS="200", HOME=folder, ZDOTDIR=folder)
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.child = child
        self.type("PS1='> '; unsetopt zle_bracketed_paste; bindkey -e; LISTMAX=1000\n"
                  "autoload -Uz compinit && compinit -u -D && unsetopt auto_menu\n"
                  f"source {script}; echo rea''dy\n")
        self.read_until("ready\r\n")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, end):
        """Reads until `end` appears, for at most half a minute."""
        heard, give_up = "", time.monotonic() + 30
        while end not in heard and time.monotonic() < give_up:
            if select.select([self.terminal], [], [], 0.1)[0]:
                heard += os.read(self.terminal, 65536).decode(errors="replace")
        return heard

    def complete(self, line):
        """The words seen after a tab, completed in the line or listed below it. The line is then
        cleared (Ctrl-A, Ctrl-K)."""
        self.type(f"{line}\t\x01\x0b echo do''ne\n")
        return set(self.read_until("done\r\n").replace("\x07", " ").split())

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.child, 0)


class Server:
    """A server with queues, whose names can be completed."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", self.folder.name, "--http", "127.0.0.1:0",
             "--beanstalk", "off"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = re.search(r"http://[\d.:]+", self.process.stdout.readline())[0]

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        programs = cls.enterClassContext(tempfile.TemporaryDirectory())
        os.symlink(os.path.abspath(PROGRAM), os.path.join(programs, "detent"))
        cls.ran = os.path.join(programs, "ran")
        with open(os.path.join(programs, "evil"), "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ntouch {cls.ran}\n")
        os.chmod(file.name, 0o755)
        os.environ["PATH"] = programs + ":" + os.environ["PATH"]
        os.environ["DETENT_URL"] = cls.server.url
        for queue in ("mail", "orders", "shop:eu", "shop:eu:fast", "shop:us", *ODD_QUEUES):
            subprocess.run([PROGRAM, "put", queue], check=True, stdout=subprocess.DEVNULL)

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        with open(os.path.join(self.folder, "dump.ndjson"), "w", encoding="utf-8"):
            pass

    def script(self, shell):
        path = os.path.join(self.folder, f"completion.{shell}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script_of(shell))
        return path

    def check(self, complete):
        for line, wanted, unwanted in LINES:
            with self.subTest(line):
                found = complete(line)
                self.assertEqual(wanted - found, set(), found)
                self.assertEqual(unwanted & found, set(), found)

    def test_bash(self):
        script = self.script("bash")
        self.check(lambda line: complete_in_bash(script, line, self.folder))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        script = self.script("fish")
        self.check(lambda line: complete_in_fish(script, line, self.folder))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        zsh = Zsh(self.script("zsh"), self.folder)
        self.check(zsh.complete)
        zsh.close()

    def test_a_queue_that_is_called_like_a_command_is_not_run(self):
        script = self.script("bash")
        found = complete_in_bash(script, "detent purge x", self.folder)
        self.assertEqual(found, {r"x\$\(evil\)", r"x\;evil"})
        self.assertFalse(os.path.exists(self.ran))

    def test_bash_completes_nothing_where_no_server_answers(self):
        script = self.script("bash")
        url = os.environ.pop("DETENT_URL")
        os.environ["DETENT_URL"] = "http://127.0.0.1:1"
        try:
            self.assertEqual(complete_in_bash(script, "detent purge ma", self.folder), set())
        finally:
            os.environ["DETENT_URL"] = url

    def test_bash_completes_what_follows_an_equals_sign(self):
        """bash takes the equals sign as a word."""
        code = (f"source {self.script('bash')}; COMP_WORDS=(detent list --state = de); "
                "COMP_CWORD=4; _detent; echo \"${COMPREPLY[@]}\"")
        run = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(run.stdout.strip(), "dead")

    def test_bash_completes_a_name_with_colons(self):
        """bash splits a word at its colons, and replaces only the last part."""
        for words, wanted in (("detent purge shop : e", "eu eu:fast"),
                              ("detent purge shop :", "eu eu:fast us"),
                              ("detent purge shop : eu : f", "fast"),
                              ("detent list --queue shop : u", "us"),
                              ("detent list --queue = shop : u", "us"),
                              ("detent put --server http : //h", "")):
            with self.subTest(words):
                line = words.replace(" : ", ":").replace(" :", ":").replace(" = ", "=")
                code = (f"source {self.script('bash')}; COMP_WORDBREAKS=' =:'; "
                        f"COMP_WORDS=({words}); COMP_CWORD={words.count(' ')}; "
                        f"COMP_LINE='{line}'; COMP_POINT={len(line)}; "
                        "_detent; echo \"${COMPREPLY[@]}\"")
                run = subprocess.run(["bash", "-c", code], capture_output=True, text=True,
                                     check=True)
                self.assertEqual(run.stdout.strip(), wanted)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
