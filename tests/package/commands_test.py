#!/usr/bin/env python3
"""Runs each command of the program against a real server and checks its exit code, its output
streams, --json, and that tables fit the terminal. The test fails if --help lists a command that is
missing in the table below.

The argument is the program.
"""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
from unittest import mock

PROGRAM = sys.argv[1]
DONE, FAILED, USAGE, NOT_FOUND = 0, 1, 2, 3

# Arguments, exit code, and whether --json prints JSON. The test fills in "{…}".
LINES = (
    ("put mail {payload} --delay 1h --key k", DONE, True),
    ("put mail {payload} --queue x", USAGE, False),
    ("put -bad-name- 1", USAGE, False),
    ("put shop:eu {payload} --delay 5mins", DONE, True),
    ("put mail {broken}", USAGE, False),
    ("put mail {broken} --bytes --delay 1h", DONE, True),
    ("get --queue mail --key k", DONE, True),
    ("get 1", NOT_FOUND, False),
    ("list", DONE, True),
    ("list --state asleep", USAGE, False),
    ("list --queue shop:eu --due-after 2026-01-31", DONE, True),
    ("move --queue mail --key k --delay 2h", DONE, True),
    ("move 1 --delay 2h", NOT_FOUND, False),
    ("edit {id} --priority 7 --payload {payload}", DONE, True),
    ("edit --queue mail --key k --header a:b", DONE, True),
    ("edit 1 --priority 7", NOT_FOUND, False),
    ("edit {id}", USAGE, False),
    ("run {id}", DONE, True),
    ("run 1", NOT_FOUND, False),
    ("lease mail", DONE, True),
    ("lease mail --max 0", USAGE, False),
    ("complete 1-999", FAILED, True),
    ("fail 1-999", FAILED, True),
    ("extend 1-999 --by 1m", FAILED, True),
    ("extend 1-999", USAGE, False),
    ("release 1-999", FAILED, True),
    ("queue set mail --rate 1000 --retention default", DONE, True),
    ("queue set mail", USAGE, False),
    ("queue set mail --max-attempts 0", USAGE, False),
    ("queue get mail", DONE, True),
    ("queue get nothing", NOT_FOUND, False),
    ("queue set empty --paused no", DONE, True),
    ("queue remove empty", DONE, True),
    ("queue remove nothing", NOT_FOUND, False),
    ("queue remove mail", FAILED, False),
    ("call GET /v1/wheel", DONE, True),
    ("call POST /v1/tasks/cancel {{}}", USAGE, False),
    ("call GET /v1/tasks/1", NOT_FOUND, False),
    ("gett 1", USAGE, False),
    ("queues", DONE, True),
    ("queues mail", DONE, True),
    ("queues nothing", NOT_FOUND, False),
    ("pause mail", DONE, True),
    ("pause nothing", NOT_FOUND, False),
    ("resume mail", DONE, True),
    ("resume nothing", NOT_FOUND, False),
    ("redrive mail", DONE, True),
    ("redrive nothing", NOT_FOUND, False),
    ("stats", DONE, True),
    ("top --once", DONE, True),
    ("top --interval 1ms", USAGE, False),
    ("forecast", DONE, True),
    ("forecast --bins 0", USAGE, False),
    ("schedule put s --every 1h --queue mail", DONE, True),
    ("schedule put s --queue mail", USAGE, False),
    ("schedule list", DONE, True),
    ("schedule get s", DONE, True),
    ("schedule get t", NOT_FOUND, False),
    ("schedule next s", DONE, True),
    ("schedule next t", NOT_FOUND, False),
    ("schedule pause s", DONE, True),
    ("schedule resume s", DONE, True),
    ("schedule trigger s", DONE, True),
    ("schedule backfill s --from 2026-01-01T00:00:00Z --to 2026-01-01T00:00:01Z", DONE, True),
    ("schedule remove s", DONE, True),
    ("schedule remove s", NOT_FOUND, False),
    ("bench --tasks 20 --batch 5 --connections 2", DONE, True),
    ("bench --queue mail", FAILED, False),
    ("dump {folder}/dump", DONE, False),
    ("restore {folder}/dump", DONE, True),
    ("restore {folder}/none", FAILED, False),
    ("cancel {id}", DONE, True),
    ("cancel 1", NOT_FOUND, False),
    ("purge mail --yes", DONE, True),
    ("purge nothing --yes", NOT_FOUND, False),
    ("cron next @daily", DONE, True),
    ("cron next bad", USAGE, False),
    ("cron explain @daily", DONE, True),
    ("check --data {folder}/none", NOT_FOUND, False),
    ("backup {folder}/backups --keep 3", DONE, True),
    ("backup {folder}/backups --check", DONE, True),
    ("backup {folder}/none --list", NOT_FOUND, False),
    ("backup {folder}/backups --keep 0", USAGE, False),
    ("backup", USAGE, False),
    ("restore-backup {folder}/backups --data {folder}/restored-{id}", DONE, True),
    ("restore-backup {folder}/backups --data {folder}/new --backup 77", NOT_FOUND, False),
    ("completion bash", DONE, False),
    ("token new --name shop --scope produce:orders.", DONE, False),
    ("token new --name shop --scope nothing", USAGE, False),
    ("completion csh", USAGE, False),
    ("serve --http nonsense", USAGE, False),
)
# Commands without --json. `serve` has --log-format; the output of the others is for machines.
WITHOUT_JSON = {"serve", "completion", "token new"}
NO_SERVER_ASKED = {"serve", "completion", "token", "check", "cron"}


def call(line, **values):
    arguments = [word.format(**values) for word in line.split()]
    return subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)


def commands(*path):
    text = call(" ".join([*path, "--help"])).stdout
    listed = re.findall(r"^  ([a-z][a-z-]*) ", text.split("\nExample")[0], re.M)
    if not listed:
        return [" ".join(path)]
    return [command for name in listed for command in commands(*path, name)]


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        server = subprocess.Popen(
            [PROGRAM, "serve", "--data", cls.folder + "/data", "--http", "127.0.0.1:0",
             "--beanstalk", "off"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        cls.addClassCleanup(server.stdout.close)
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.terminate)
        os.environ["DETENT_URL"] = re.search(r"http://[\d.:]+", server.stdout.readline())[0]

    def values(self):
        made = json.loads(call("put mail 1 --delay 1h --json").stdout)
        return {"id": made["id"], "folder": self.folder, "payload": "text-" + "x" * 300,
                "broken": '{"a":'}

    def test_exit_codes_and_where_it_is_written(self):
        for line, exit_code, _ in LINES:
            with self.subTest(line):
                run = call(line, **self.values())
                self.assertEqual(run.returncode, exit_code, run.stderr)
                if exit_code in (USAGE, NOT_FOUND):
                    self.assertEqual(run.stdout, "")
                    self.assertTrue(run.stderr)
                self.assertNotIn("\x1b", run.stdout + run.stderr)

    def test_json_is_json_a_line_each(self):
        for line, _, has_json in LINES:
            if not has_json:
                continue
            with self.subTest(line):
                if line.startswith("schedule") and "put" not in line:
                    call("schedule put s --every 1h --queue mail")
                # The key of an earlier test still exists.
                own = line.replace("--key k", "--key of-json")
                if line.startswith("queue remove"):
                    call(line.replace("remove", "set") + " --paused no")
                run = call(own + " --json", **self.values())
                for text in run.stdout.splitlines():
                    json.loads(text)
                is_empty_answer = line.startswith("cancel") or "remove" in line
                self.assertTrue(run.stdout or is_empty_answer, run.stderr)

    def test_every_command_is_here_with_help_examples_and_json(self):
        found = commands()
        self.assertGreater(len(found), 25)
        for command in found:
            with self.subTest(command):
                self.assertTrue(any(line.startswith(command) for line, _, _ in LINES))
                text = call(command + " --help").stdout
                self.assertRegex(text, rf"(?m)^  .*detent {command}\b")
                self.assertEqual("--json" in text, command not in WITHOUT_JSON)
                self.assertEqual(call(command + " --no-such-option").returncode, USAGE)

    def test_check_tells_what_a_copy_holds(self):
        server = subprocess.Popen(
            [PROGRAM, "serve", "--data", self.folder + "/other", "--http", "127.0.0.1:0",
             "--beanstalk", "off"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        server.stdout.readline()
        server.terminate()
        server.communicate()
        run = call("check --data {folder}/other --json", folder=self.folder)
        self.assertEqual(run.returncode, DONE, run.stderr)
        self.assertEqual(json.loads(run.stdout)["finding_count"], 0)

    def test_a_server_that_is_not_there_is_a_failure_that_says_so(self):
        for line, exit_code, _ in LINES:
            if line.split()[0] in NO_SERVER_ASKED or exit_code == USAGE:
                continue
            if line.startswith("restore") or re.search("--(list|check)$", line):
                continue  # the file or the folder comes first
            with self.subTest(line):
                run = call(line + " --server http://127.0.0.1:1", **self.values())
                self.assertEqual(run.returncode, FAILED)
                self.assertIn("127.0.0.1:1", run.stderr + line)

    def test_tables_fit_the_terminal(self):
        values = self.values()
        call("put mail {payload} --key long", **values)
        call("schedule put s --every 1h --queue mail")
        for line in ("get --queue mail --key long", "list", "queues", "stats", "forecast",
                     "lease mail", "schedule list", "top --once"):
            for columns in (60, 100):
                with self.subTest(line, columns=columns):
                    for text in self.on_terminal(line, columns):
                        self.assertLessEqual(len(text), max(columns, self.least(line)), text)

    def test_a_list_of_80_columns_has_the_payload_but_not_the_priority(self):
        call("put mail {payload} --key k80 --delay 1h", **self.values())
        lines = self.on_terminal("list --key k80", 80)
        self.assertTrue(lines[0].endswith("KEY  PAYLOAD"), lines[0])
        self.assertNotIn("PRIORITY", lines[0])
        self.assertRegex(lines[1], r"  k80  text-x{10,}…$")

    def test_what_errors_say(self):
        address = os.environ["DETENT_URL"].removeprefix("http://")
        script = os.path.join(self.folder, "seed.py")
        settings = os.path.join(self.folder, "settings.toml")
        for path, text in ((script, "import detent\n"), (settings, "memory = 1G\n")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        not_there = "no queue named 'nope'\n"
        for line, words in (
                ("queues nope", "detent: " + not_there),
                ("pause nope", "detent: " + not_there),
                ("lease nope", not_there),
                ("list --queue nope", not_there),
                ("complete 1-999", "1-999  not held (expired, finished or unknown)\n"),
                ("put mail --priority high", "--priority: must be a whole number from 0 to "),
                (f"stats --server https://{address}", ": server speaks plain HTTP; use http://\n"),
                (f"restore {script}", f"'{script}' is not a dump"),
                ("serve --auth /nope --http 127.0.0.1:0", "--auth: cannot read /nope"),
                (f"serve --config {settings}", 'put text in quotes: memory = "1G"\n'),
                (f"serve --data {self.folder}/data --http localhost:0 --beanstalk off",
                 "in use by another process, pid "),
                (f"serve --data {self.folder}/other --http {address} --beanstalk off",
                 f"--http: listen on {address}: Address already in use; "),
                (f"serve --data {self.folder}/other --http localhost:0 --beanstalk {address}",
                 f"--beanstalk: listen on {address}: Address already in use; ")):
            with self.subTest(line):
                run = call(line)
                self.assertIn(words, run.stdout + run.stderr)

    def test_a_failed_start_is_an_error_of_a_json_log(self):
        missing = f"--data {self.folder}/no/such --http localhost:0"
        twice = "--http localhost:0 --http localhost:0"
        for line, words in (
                (f"serve --log-format json {missing}", "/no/such' cannot be created"),
                (f"serve --log-format=json {twice}", "--http is given more than once"),
                ("serve --log-format json --config /nope", "/nope: the file does not exist")):
            with self.subTest(line):
                self.check_json_log(call(line).stderr, words)
        with mock.patch.dict(os.environ, DETENT_LOG_FORMAT="json"):
            self.check_json_log(call(f"serve {twice}").stderr, "--http is given more than once")
            self.assertIn("detent serve: ", call(f"serve --log-format text {missing}").stderr)
            self.assertTrue(call("lease --max 0").stderr.startswith("detent"))

    def check_json_log(self, log, words):
        line = [json.loads(line) for line in log.splitlines()][-1]
        self.assertEqual((line["level"], line["message"]), ("error", "the server cannot start"))
        self.assertIn(words, line["cause"])
        self.assertTrue(line["time"] and line["action"])

    def test_a_missing_token_is_explained(self):
        tokens = os.path.join(self.folder, "tokens.toml")
        with open(tokens, "w", encoding="utf-8") as file:
            file.write(call("token new --name a --scope read").stdout)
        os.chmod(tokens, 0o600)
        server = subprocess.Popen(
            [PROGRAM, "serve", "--data", self.folder + "/private", "--http", "localhost:0",
             "--beanstalk", "off", "--auth", tokens], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        address = re.search(r"http://([\d.:]+)", server.stdout.readline())[1]
        run = call(f"stats --server {address}")
        server.terminate()
        server.communicate()
        self.assertEqual(run.returncode, FAILED)
        self.assertIn("detent: token required: set DETENT_TOKEN or --token\n", run.stderr)

    @staticmethod
    def least(line):
        """The width that cannot be cut: ids, times and numbers of a table."""
        return 110 if line in ("list", "schedule list", "stats", "queues") else 0

    def on_terminal(self, line, columns):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        process = subprocess.Popen([PROGRAM, *line.split()], stdin=subprocess.DEVNULL,
                                   stdout=theirs, stderr=subprocess.DEVNULL)
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:
            pass  # Linux reports a closed terminal in this way
        os.close(ours)
        self.assertEqual(process.wait(), 0)
        return text.decode().splitlines()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
