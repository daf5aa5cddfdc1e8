#!/usr/bin/env python3
"""Sends the same random commands from several clients to the program and to beanstalkd.

All replies must be equal, except for the differences in docs/reference/beanstalk.md.

The arguments are the program and optionally seeds to replay.
"""

import random
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from child_programs import die_with_parent, free_port, wait_until  # noqa: E402

PROGRAM = sys.argv[1]
SEEDS = [int(seed) for seed in sys.argv[2:]] or [random.randrange(1 << 32) for _ in range(3)]
COMMANDS = 400  # per seed
WORKERS = 3
TUBES = ["a", "b", "c"]

# Fields of stats-job and stats-tube that depend on the clock or differ according to beanstalk.md.
LEFT_OUT = ("age", "time-left", "pause-time-left", "file", "delay", "cmd-touch")


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.replies = self.socket.makefile("rb")

    def ask(self, command):
        """Returns the words of the reply line, and the body."""
        self.socket.sendall(command.encode())
        words = self.replies.readline().decode().split()
        if not words:
            raise EOFError(command)
        body = ""
        if words[0] in ("RESERVED", "FOUND", "OK"):
            body = self.replies.read(int(words[-1]) + 2).decode()
        return words, body


class Side:
    """One of the two servers: its clients, and its job ids by the number of the put."""

    def __init__(self, port, prefix):
        self.prefix = prefix
        self.clients = [Client(port) for _ in range(WORKERS + 1)]
        self.ids = []

    def ask(self, client, command, job):
        """The part of an answer that must be equal on both sides."""
        text = command if job is None else command.replace("%", str(self.ids[job]))
        words, body = self.clients[client].ask(text)
        if words[0] == "INSERTED":
            self.ids.append(int(words[1]))
            return ["INSERTED"]
        if words[0] in ("RESERVED", "FOUND"):
            return [words[0], self.number(words[1]), body]
        if words[0] == "OK":
            return self.lines(body)
        return words

    def number(self, job_id):
        return self.ids.index(int(job_id)) if int(job_id) in self.ids else job_id

    def lines(self, body):
        figures = dict(re.findall(r"^([a-z-]+): (.*)$", body, re.MULTILINE))
        if not figures:  # a list of tubes
            return sorted(line for line in body.split("\n") if self.prefix in line)
        if "state" in figures:
            figures["id"] = self.number(figures["id"])
        return sorted((key, value) for key, value in figures.items() if key not in LEFT_OUT)


class Commands:
    """Random commands. All priorities differ, because the order of equal priorities differs."""

    KINDS = {"put": 12, "reserve-with-timeout 0": 10, "delete %": 4, "release %": 5, "bury %": 5,
             "touch %": 2, "kick": 2, "kick-job %": 3, "peek %": 3, "peek-ready": 2,
             "peek-delayed": 2, "peek-buried": 2, "stats-job %": 6, "stats-tube": 4, "use": 2,
             "watch": 2, "ignore": 2, "reserve-job %": 3, "list-tubes-watched": 1,
             "list-tube-used": 1, "list-tubes": 1, "pause-tube": 1, "put x": 1, "nonsense": 1}

    def __init__(self, seed, prefix):
        self.random = random.Random(seed)
        self.tubes = [prefix + tube for tube in TUBES]
        self.priorities = self.random.sample(range(1, 1 << 20), 2 * COMMANDS)
        self.puts = 0

    def next(self):
        """Returns (client, command, job of the command or None)."""
        kind = self.random.choices(list(self.KINDS), list(self.KINDS.values()))[0]
        client = self.random.randrange(WORKERS)
        job = None
        if "%" in kind:
            if self.puts == 0:
                return self.next()
            job = self.random.randrange(max(0, self.puts - 25), self.puts)
        return client, self.text(kind) + "\r\n", job

    def text(self, kind):
        if kind == "put":
            # Delays are long, so that no job becomes due during the test, and each delay is longer
            # than the earlier ones.
            delay = self.random.choice([0, 0, 0, 1_000 + self.puts])
            self.puts += 1
            size = self.random.randrange(9)
            return f"put {self.priorities.pop()} {delay} 1000 {size}\r\n{'x' * size}"
        if kind == "release %":
            delay = self.random.choice([0, 0, 5_000 + len(self.priorities)])
            return f"{kind} {self.priorities.pop()} {delay}"
        if kind == "bury %":
            return f"{kind} {self.priorities.pop()}"
        if kind == "kick":
            return f"kick {self.random.randrange(4)}"
        if kind == "pause-tube":
            return f"{kind} {self.random.choice(self.tubes)} {self.random.choice([0, 0, 1_000])}"
        if kind in ("stats-tube", "use", "watch", "ignore"):
            return f"{kind} {self.random.choice(self.tubes)}"
        return kind


def compare(seed, ports):
    prefix = f"s{seed}-"
    sides = [Side(port, prefix) for port in ports]
    commands = Commands(seed, prefix)
    told = []

    def ask(client, command, job=None):
        answers = [side.ask(client, command, job) for side in sides]
        told.append((client, command, job, answers[0]))
        if answers[0] == answers[1]:
            return
        print(f"seed {seed}: beanstalkd answers\n  {answers[0]}\nand detent\n  {answers[1]}\nto")
        for line in told[-30:]:
            print("  ", line)
        sys.exit(1)

    # beanstalkd forgets a tube without clients, with its counts. So one client watches all tubes.
    for tube in commands.tubes:
        ask(WORKERS, f"watch {tube}\r\n")
    for client in range(WORKERS):
        ask(client, f"use {commands.tubes[client]}\r\n")
        ask(client, f"watch {commands.tubes[client]}\r\n")
        ask(client, "ignore default\r\n")
    for _ in range(COMMANDS):
        ask(*commands.next())


def port_of(output):
    """Reads the port from the line that the program prints when it is ready."""
    return int(re.search(r"beanstalk at 127\.0\.0\.1:(\d+)", output.readline())[1])


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=20).close()
        return True
    except ConnectionRefusedError:
        return False


def main():
    children = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            detent = subprocess.Popen(
                [PROGRAM, "serve", "--data", folder, "--http", "127.0.0.1:0", "--beanstalk",
                 "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                preexec_fn=die_with_parent)
            children.append(detent)
            port = free_port()
            children.append(subprocess.Popen(["beanstalkd", "-l", "127.0.0.1", "-p", str(port)],
                                             preexec_fn=die_with_parent))
            ports = [port, port_of(detent.stdout)]
            wait_until(lambda: listens(port), 20, "beanstalkd")
            for seed in SEEDS:
                print("seed", seed, flush=True)
                compare(seed, ports)
        finally:
            for child in children:
                child.kill()
                child.wait()


main()
