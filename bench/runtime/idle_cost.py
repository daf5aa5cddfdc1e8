#!/usr/bin/env python3
"""idle_cost.py PROGRAM [--tasks 10m] [--keys 500k] [--seconds 60]: the cost of waiting tasks.

Starts the server on a new folder and puts tasks of 100 bytes in batches of 10 000. They are due
evenly over a day that begins in an hour. `keys` of them have a key. Then prints:

- idle: the processor time of all threads (/proc/PID/task/*/schedstat, nanoseconds) and their
  wake-ups (voluntary context switches) by thread, in this number of seconds without requests. The
  server has put its tasks in order and is at rest.
- asked: the time of a request for the counts, for the next due task and for the forecast of the
  day, in sequence on one connection. The same for an empty server before.
- by key: tasks with keys are moved by key, and then cancelled, 1 000 per request, on two
  connections. Each change has its own answer, and is durable before the answer.
"""

import argparse
import concurrent.futures
import http.client
import json
import pathlib
import re
import subprocess
import tempfile
import time

BATCH = 10_000
HOUR_MS = 3_600_000
PAYLOAD = "x" * 98  # 100 bytes with its quotes
ASKED = {"counts": "/v1/stats",
         "next": "/v1/tasks?queue=q&state=scheduled&limit=1",
         "forecast": "/v1/forecast?span=26h&bins=312"}


def count_of(text):
    return int(float(text.rstrip("km")) * {"k": 1_000, "m": 1_000_000}.get(text[-1], 1))


class Server:
    """The program on a new folder. /proc has its CPU time and wake-ups."""

    def __init__(self, program, folder):
        self.process = subprocess.Popen(
            [program, "serve", "--data", folder, "--http", "127.0.0.1:0", "--beanstalk",
             "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        said = self.process.stdout.readline().split("http", 1)[1]
        self.port = int(re.search(r":(\d+)", said)[1])
        self.tasks = pathlib.Path("/proc", str(self.process.pid), "task")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port)

    def use(self):
        """For each thread: name, nanoseconds of CPU time, voluntary context switches."""
        threads = {}
        for thread in self.tasks.iterdir():
            status = (thread / "status").read_text(encoding="utf-8")
            switches = int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M)[1])
            busy = int((thread / "schedstat").read_text(encoding="utf-8").split()[0])
            threads[thread.name] = (status.split()[1], busy, switches)
        return threads

    def used_in(self, seconds):
        """The use of each thread during this number of seconds: name, CPU seconds, wake-ups."""
        before = self.use()
        time.sleep(seconds)
        return [(name, (busy - before[thread][1]) / 1e9, switches - before[thread][2])
                for thread, (name, busy, switches) in self.use().items() if thread in before]

    def used(self):
        """CPU seconds of all living threads."""
        return sum(busy for _, busy, _ in self.use().values()) / 1e9

    def memory_mb(self):
        status = (self.tasks.parent / "status").read_text(encoding="utf-8")
        return int(re.search(r"^VmRSS:\s*(\d+)", status, re.M)[1]) // 1024


def ask(client, method, target, body=None):
    client.request(method, target, body)
    answer = client.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{method} {target}: {answer.status} {text[:300]}")
    return text


def load(server, first, count, key):
    """Batches of tasks, numbered from `first`. With `key`, the number is also the key."""
    client = server.connect()
    for begin in range(first, first + count, BATCH):
        ask(client, "POST", "/v1/tasks/batch", "[" + ",".join(
            f'{{"queue":"q","delay_ms":{HOUR_MS + i * 7_919_993 % (24 * HOUR_MS)},'
            f'"payload":"{PAYLOAD}"' + (f',"key":"k{i}"}}' if key else "}")
            for i in range(begin, min(begin + BATCH, first + count))) + "]")


def load_all(server, tasks, keys):
    began = time.monotonic()
    half = (tasks - keys) // 2 // BATCH * BATCH
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        parts = [pool.submit(load_part, server.port, first, count, key) for first, count, key in (
            (0, keys, True), (keys, half, False), (keys + half, tasks - keys - half, False))]
        for part in parts:
            part.result()
    counts = json.loads(ask(server.connect(), "GET", "/v1/stats"))
    scheduled = sum(queue["scheduled"] for queue in counts["queues"])
    assert scheduled == tasks, f"{scheduled} of {tasks} are there"
    print(f"loaded   {tasks} tasks, {keys} of them with a key, "
          f"in {time.monotonic() - began:.0f} s")


class Address:  # pylint: disable=too-few-public-methods
    """The address of the server, for a child process."""

    def __init__(self, port):
        self.port = port

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port)


def load_part(port, first, count, key):
    load(Address(port), first, count, key)


def come_to_rest(server, patience_s=300):
    """Waits until the server uses less than 20 ms in 5 s."""
    began = time.monotonic()
    while sum(busy for _, busy, _ in server.used_in(5)) > 0.02:
        if time.monotonic() - began > patience_s:
            raise RuntimeError(f"no rest after {patience_s} s")
    return time.monotonic() - began


def show_idle(server, seconds):
    rest = come_to_rest(server)
    used = server.used_in(seconds)
    busy, wakeups = sum(part[1] for part in used), sum(part[2] for part in used)
    print(f"idle     {busy / seconds * 100:.4f} % of a core, {wakeups / seconds:.2f} wake-ups/s, "
          f"over {seconds} s; at rest {rest:.0f} s after loading; {server.memory_mb()} MB")
    for name, its_busy, its_wakeups in sorted(used, key=lambda part: -part[1]):
        if its_wakeups > 0:
            print(f"           {name:16} {its_busy / seconds * 100:.4f} %  "
                  f"{its_wakeups / seconds:.2f}/s")


def show_asked(server, what):
    client = server.connect()
    for name, target in ASKED.items():
        times = []
        for _ in range(300):
            began = time.perf_counter()
            ask(client, "GET", target)
            times.append((time.perf_counter() - began) * 1_000)
        times.sort()
        print(f"asked    {name:9} p50 {times[150]:.3f} ms  p99 {times[297]:.3f} ms  "
              f"max {times[-1]:.3f} ms  ({what})")


def change(server, route, keys, rest):
    """The part of one connection. Returns the number of changed tasks."""
    client = server.connect()
    done = 0
    for begin in range(0, len(keys), 1_000):
        body = {"queue": "q", "keys": keys[begin:begin + 1_000]} | rest
        done += ask(client, "POST", route, json.dumps(body)).count(b'"state":')
    return done


def show_by_key(server, keys):
    names = [f"k{i}" for i in range(keys)]
    for word, route, rest in (("moved", "/v1/tasks/move", {"delay": "2h"}),
                              ("cancelled", "/v1/tasks/cancel", {})):
        began, used = time.monotonic(), server.used()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            parts = [pool.submit(change, server, route, names[half::2], rest) for half in (0, 1)]
            done = sum(part.result() for part in parts)
        took, used = time.monotonic() - began, server.used() - used
        assert done == keys, f"{done} of {keys} {word}"
        print(f"by key   {done} {word}: {done / took / 1_000:.0f} thousand/s, "
              f"{used / done * 1e6:.1f} us of the server's processor each")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--tasks", type=count_of, default=10_000_000)
    parser.add_argument("--keys", type=count_of, default=500_000)
    parser.add_argument("--seconds", type=int, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(arguments.program, folder)
        try:
            show_asked(server, "no task")
            load_all(server, arguments.tasks, arguments.keys)
            show_idle(server, arguments.seconds)
            show_asked(server, f"{arguments.tasks} tasks")
            show_by_key(server, arguments.keys)
        finally:
            server.process.terminate()
            server.process.wait()


if __name__ == "__main__":
    main()
