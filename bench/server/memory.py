#!/usr/bin/env python3
"""memory.py PROGRAM [--memory 64M,512M] [--tasks 1m] [--payload 100] [--delay 0]

Measures the memory of a server, compared with --memory.

Starts the server on a new folder and puts tasks in batches of 10 000 into three queues without
workers. They are due immediately, or spread over --delay seconds. Prints the resident memory in
megabytes: the maximum, the memory after 15 seconds without requests, and the memory 10 seconds
after kill -9 and a restart.
"""

import argparse
import http.client
import json
import pathlib
import re
import subprocess
import tempfile
import time

BATCH = 10_000


def count_of(text):
    return int(float(text.rstrip("km")) * {"k": 1_000, "m": 1_000_000}.get(text[-1], 1))


class Server:
    """The program on a folder. /proc has its memory."""

    def __init__(self, program, folder, memory):
        self.process = subprocess.Popen(
            [program, "serve", "--data", folder, "--http", "127.0.0.1:0", "--beanstalk", "off",
             "--memory", memory], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        said = self.process.stdout.readline().split("http", 1)[1]
        port = int(re.search(r":(\d+)", said)[1])
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def accept(self, tasks):
        self.connection.request("POST", "/v1/tasks/batch", json.dumps(tasks))
        answer = self.connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status

    def megabytes(self, field="VmRSS"):
        status = pathlib.Path("/proc", str(self.process.pid), "status").read_text(encoding="utf-8")
        return int(re.search(rf"^{field}:\s*(\d+)", status, re.M)[1]) // 1024

    def kill(self):
        self.process.kill()
        self.process.wait()


def measure(options, memory, folder):
    server = Server(options.program, folder, memory)
    step = options.delay * 1_000 / options.tasks
    for first in range(0, options.tasks, BATCH):
        server.accept([{"queue": f"q{n % 3}", "payload": "x" * (options.payload - 2),
                        "delay_ms": int(n * step)} for n in range(first, first + BATCH)])
    time.sleep(15)
    most, idle = server.megabytes("VmHWM"), server.megabytes()
    server.kill()
    server = Server(options.program, folder, memory)
    time.sleep(10)
    print(f"--memory {memory}: at most {most}, idle {idle}, after a start {server.megabytes()} MB",
          flush=True)
    server.kill()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--memory", default="64M,512M")
    parser.add_argument("--tasks", type=count_of, default=1_000_000)
    parser.add_argument("--payload", type=int, default=100, help="bytes")
    parser.add_argument("--delay", type=int, default=0, help="seconds")
    options = parser.parse_args()
    for memory in options.memory.split(","):
        with tempfile.TemporaryDirectory(prefix="detent-memory-") as folder:
            measure(options, memory, folder + "/data")


if __name__ == "__main__":
    main()
