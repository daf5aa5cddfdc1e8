#!/usr/bin/env python3
"""task_path.py PROGRAM [--tasks 2000] [--json FILE]: the cost of each step of a task.

For each step of a task's life, over HTTP and with the beanstalk protocol, one task at a time and
many together: instructions of each thread (callgrind), system calls and syncs (strace), and bytes
written (/proc/PID/io). These figures do not depend on the load of the machine, with one exception:
with many tasks, it changes how many requests share a commit. Needs valgrind and strace; takes a
minute or two.
"""

import argparse
import collections
import http.client
import json
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

PAYLOAD = "x" * 98  # 100 bytes with its quotes
BATCH = 1_000
PIPELINED = 500
SYNCS = ("fdatasync", "fsync", "sync_file_range")


class Http:
    """One task per request, or BATCH tasks."""

    def __init__(self, ports, tasks, many):
        self.client = http.client.HTTPConnection("127.0.0.1", ports[0])
        self.tasks, self.many = tasks, BATCH if many else 1
        self.leases = []

    def ask(self, target, body):
        self.client.request("POST", target, body)
        answer = self.client.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{target}: {answer.status} {text[:200]}")
        return text

    def put(self, delay_ms):
        task = f'{{"queue":"q","delay_ms":{delay_ms},"payload":"{PAYLOAD}"}}'
        target = "/v1/tasks/batch" if self.many > 1 else "/v1/tasks"
        body = "[" + ",".join([task] * self.many) + "]" if self.many > 1 else task
        for _ in range(self.tasks // self.many):
            self.ask(target, body)

    def steps(self):
        yield "put, due in a day", lambda: self.put(86_400_000)
        yield "put, due now", lambda: self.put(0)
        yield "lease", self.lease
        yield "complete", self.complete

    def lease(self):
        while len(self.leases) < self.tasks:
            answer = json.loads(self.ask("/v1/queues/q/lease", f'{{"max":{self.many}}}'))
            self.leases += [task["lease"] for task in answer["tasks"]]

    def complete(self):
        for first in range(0, len(self.leases), self.many):
            part = self.leases[first:first + self.many]
            self.ask("/v1/leases/complete", json.dumps({"leases": part}))
        self.leases = []


class Beanstalk:
    """One command at a time, or PIPELINED commands."""

    def __init__(self, ports, tasks, many):
        self.connection = socket.create_connection(("127.0.0.1", ports[1]))
        self.answers = self.connection.makefile("rb")
        self.tasks, self.many = tasks, PIPELINED if many else 1
        self.jobs = []

    def put(self, delay):
        command = f"put 1024 {delay} 120 100\r\n\"{PAYLOAD}\"\r\n".encode()
        for _ in range(self.tasks // self.many):
            self.connection.sendall(command * self.many)
            for _ in range(self.many):
                assert self.answers.readline().startswith(b"INSERTED")

    def steps(self):
        yield "put, due in a day", lambda: self.put(86_400)
        yield "put, due now", lambda: self.put(0)
        yield "reserve", self.reserve
        yield "delete", self.delete

    def reserve(self):
        for _ in range(self.tasks // self.many):
            self.connection.sendall(b"reserve\r\n" * self.many)
            for _ in range(self.many):
                answer = self.answers.readline().split()
                assert answer[0] == b"RESERVED", answer
                self.answers.read(int(answer[2]) + 2)
                self.jobs.append(answer[1])

    def delete(self):
        for first in range(0, len(self.jobs), self.many):
            part = self.jobs[first:first + self.many]
            self.connection.sendall(b"".join(b"delete " + job + b"\r\n" for job in part))
            for _ in part:
                assert self.answers.readline().startswith(b"DELETED")
        self.jobs = []


WAYS = (("HTTP, one by one", Http, False), ("HTTP, 1 000 a request", Http, True),
        ("beanstalk, one by one", Beanstalk, False), ("beanstalk, 500 pipelined", Beanstalk, True))


class Server:
    def __init__(self, program, folder, prefix=()):
        self.process = subprocess.Popen(
            [*prefix, program, "serve", "--data", folder / "data", "--http", "127.0.0.1:0",
             "--beanstalk", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, cwd=folder)
        self.ports = [int(port) for port in
                      re.findall(r":(\d+)", self.process.stdout.readline())[-2:]]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def written(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/io").read_text(encoding="ascii")
        return int(re.search(r"^wchar: (\d+)", text, re.M)[1])


def each_step(server, tasks):
    """(way, step, action) after a warm-up, one way after another."""
    for way, make, many in WAYS:
        client = make(server.ports, tasks, many)
        for _, action in client.steps():
            action()
        for step, action in client.steps():
            yield way, step, action


def count_instructions(program, folder, tasks):
    """(way, step) → thread → instructions per task."""
    server = Server(program, folder, ("valgrind", "--tool=callgrind", "--separate-threads=yes",
                                      f"--callgrind-out-file={folder}/out"))
    control = ["callgrind_control", str(server.process.pid)]
    result = {}
    for number, (way, step, action) in enumerate(each_step(server, tasks)):
        subprocess.run([*control, "--zero"], check=True, capture_output=True)
        action()
        subprocess.run([*control, f"--dump=step{number}"], check=True, capture_output=True)
        time.sleep(0.3)
        threads = {}
        for file in folder.glob("out.*"):
            text = file.read_text(encoding="utf-8")
            thread = re.search(r"^thread: (\d+)", text, re.M)
            total = re.search(r"^(?:totals|summary): (\d+)", text, re.M)
            if thread and total and f"step{number}" in text and int(total[1]) > 0:
                threads[int(thread[1])] = int(total[1]) / tasks
            file.unlink()
        result[way, step] = threads
    server.stop()
    return result


def count_calls(program, folder, tasks):
    """(way, step) → system call → calls per task; also "bytes" → bytes written per task."""
    server = Server(program, folder)
    result = {}
    for way, step, action in each_step(server, tasks):
        counts = folder / "strace"
        command = ["strace", "-f", "-c", "-U", "name,calls", "-o", counts, "-p",
                   str(server.process.pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as trace:
            trace.stderr.readline()  # attached
            time.sleep(0.3)
            written = server.written()
            action()
            written = server.written() - written
            trace.send_signal(signal.SIGINT)
        calls = collections.Counter({name: int(count) / tasks for name, count in re.findall(
            r"^(\w+)\s+(\d+)\s*$", counts.read_text(encoding="ascii"), re.M) if name != "total"})
        calls["bytes"] = written / tasks
        result[way, step] = calls
    server.stop()
    return result


def row(way, step, instructions, calls):
    busiest = sorted(instructions.values(), reverse=True)[:2]
    syncs = sum(calls[name] for name in SYNCS)
    all_calls = sum(calls.values()) - calls["bytes"]
    main_calls = ", ".join(f"{name} {count:.2g}" for name, count in calls.most_common(6)
                           if name != "bytes" and count >= 0.01)
    return (f"| {way} | {step} | {sum(instructions.values()):.0f} | "
            f"{' + '.join(f'{each:.0f}' for each in busiest)} | {all_calls:.3g} | {syncs:.2g} | "
            f"{calls['bytes']:.0f} | {main_calls} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--tasks", type=int, default=2_000)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    program, tasks = arguments.program.resolve(), arguments.tasks
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        instructions = count_instructions(program, pathlib.Path(first), tasks)
        calls = count_calls(program, pathlib.Path(second), tasks)
    print("| way | step | instructions | busiest threads | system calls | syncs | bytes written "
          "| calls |\n|---|---|---:|---:|---:|---:|---:|---|")
    for way, step in instructions:
        print(row(way, step, instructions[way, step], calls[way, step]))
    if arguments.json:
        arguments.json.write_text(json.dumps([
            {"way": way, "step": step, "threads": instructions[way, step],
             "calls": calls[way, step]} for way, step in instructions], indent=1) + "\n")


if __name__ == "__main__":
    main()
