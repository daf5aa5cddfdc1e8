#!/usr/bin/env python3
"""cluster_bench.py PROGRAM [--seconds 10] [--nodes 3] [--shards 12] [--csv FILE]

Measures a cluster. It uses a separate PostgreSQL with syncs. Nodes, PostgreSQL and clients all run
on this machine, so they share its processors.

accept: tasks per second that all nodes accept in batches of 500. An answered task is durable.
life: tasks per second that workers lease and complete, 200 together.
Both also have the processor time per thousand tasks, of all nodes, of PostgreSQL and of the
clients. These figures show the effect of a change even on a busy machine.
lateness: the time from the due time of a task until a worker has it, by the clock of this machine.
The tasks are due in sequence, 200 per second, and some of the workers wait.
failover: a node is killed. The seconds until another node has accepted a task for each queue, and
this time divided by (lease + heartbeat). The other nodes know of the death after that time.

Targets on an idle machine: 3 nodes accept 30 000 tasks per second, and the p99 of lateness is below
20 ms.
"""

import argparse
import csv
import datetime
import http.client
import json
import multiprocessing
import os
import pathlib
import resource
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "cluster"))
from nodes import Node, Wires  # noqa: E402
from private_postgres import PrivatePostgres, children_of, wait_until  # noqa: E402

BATCH = 500
LEASES = 200
TIMED_RATE = 200
LEASE_MS = 10_000
CLIENTS = 3  # processes, each with its own node
WORKERS = 4  # threads of each process, for the queue of timed tasks


class SyncingPostgres(PrivatePostgres):
    fsync = "on"


def call(connection, method, path, body):
    """The answer. Repeats the request while the answer is 503: the shard is moving."""
    while True:
        connection.request(method, path, body)
        response = connection.getresponse()
        text = response.read()
        if response.status != 503:
            return json.loads(text)
        time.sleep(0.05)


def accept(port, number, seconds, tell):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    batch = json.dumps([{"queue": f"bench-{number}-{i % 8}", "payload": "x" * 100}
                        for i in range(BATCH)])
    count = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        call(connection, "POST", "/v1/tasks/batch", batch)
        count += BATCH
    tell.put(count)


def work(port, number, seconds, tell):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    lease = json.dumps({"max": LEASES})
    count = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        path = f"/v1/queues/bench-{number}-{count // LEASES % 8}/lease"
        tasks = call(connection, "POST", path, lease)["tasks"]
        if not tasks:
            break
        leases = json.dumps({"leases": [task["lease"] for task in tasks]})
        call(connection, "POST", "/v1/leases/complete", leases)
        count += len(tasks)
    tell.put(count)


def be_served(port, number, seconds, tell):
    """Workers that wait at one node for what is due, from whichever node has it. One that completes
    what it has does not wait, so there are several."""
    late = []
    until = time.monotonic() + seconds + 2

    def serve():
        connection = http.client.HTTPConnection("127.0.0.1", port)
        lease = json.dumps({"max": 10, "wait": "1s"})
        while time.monotonic() < until:
            tasks = call(connection, "POST", f"/v1/queues/timed-{number}/lease", lease)["tasks"]
            now = time.time()
            late.extend(1e3 * (now - datetime.datetime.fromisoformat(task["due_at"]).timestamp())
                        for task in tasks)
            if tasks:
                leases = json.dumps({"leases": [task["lease"] for task in tasks]})
                call(connection, "POST", "/v1/leases/complete", leases)

    workers = [threading.Thread(target=serve) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    tell.put(late)


def put_timed(ports, seconds):
    """Puts all tasks in advance. They are due evenly, from a second from now on."""
    connection = http.client.HTTPConnection("127.0.0.1", ports[0])
    count = int(TIMED_RATE * seconds)
    for first in range(0, count, BATCH):
        batch = [{"queue": f"timed-{i % CLIENTS}", "payload": i,
                  "delay_ms": 1_000 + i * 1_000 // TIMED_RATE}
                 for i in range(first, min(first + BATCH, count))]
        call(connection, "POST", "/v1/tasks/batch", json.dumps(batch))


def at_once(run, ports, seconds, meanwhile=lambda: None):
    """The results of `CLIENTS` processes, and the time they took."""
    tell = multiprocessing.Queue()
    began = time.monotonic()
    clients = [multiprocessing.Process(target=run, args=(ports[i % len(ports)], i, seconds, tell))
               for i in range(CLIENTS)]
    for client in clients:
        client.start()
    meanwhile()
    told = [tell.get() for _ in clients]
    for client in clients:
        client.join()
    return told, time.monotonic() - began


def processor_seconds(processes):
    """User and system time of these processes and of their ended children."""
    ticks = 0
    for process in processes:
        try:
            stat = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii")
        except OSError:
            continue  # it has ended
        ticks += sum(map(int, stat.rsplit(")", 1)[1].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


class ProcessorTime:
    """Processor time per thousand tasks, in milliseconds, by group of processes."""

    def __init__(self, nodes, postgres):
        self.nodes = [node.process.pid for node in nodes]
        self.postmaster = postgres.process.pid
        self.before = self.seconds()

    def seconds(self):
        clients = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {"nodes": processor_seconds(self.nodes),
                "database": processor_seconds([self.postmaster, *children_of(self.postmaster)]),
                "clients": clients.ru_utime + clients.ru_stime}

    def of(self, count):
        after = self.seconds()
        return {who: (after[who] - self.before[who]) * 1e6 / max(count, 1) for who in after}


def throughput(name, run, cluster, seconds):
    """The figures of the clients' work in this time. Their counts are tasks."""
    nodes, postgres = cluster
    spent = ProcessorTime(nodes, postgres)
    counts, took = at_once(run, [node.port for node in nodes], seconds)
    spent = spent.of(sum(counts))
    print(f"{name}: {sum(counts) / took:,.0f} tasks a second; a thousand took " +
          ", ".join(f"{ms:.1f} ms of {who}" for who, ms in spent.items()))
    figures = {f"{name} /s": sum(counts) / took}
    return figures | {f"{name} ms of {who}": ms for who, ms in spent.items()}


def fail_over(nodes):
    """Seconds from the death of the last node until the first node can put into every queue."""
    nodes[-1].signal(signal.SIGKILL)
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", nodes[0].port)
    for queue in (f"bench-{number}-{i}" for number in range(CLIENTS) for i in range(8)):
        call(connection, "POST", "/v1/tasks", json.dumps({"queue": queue}))
    return time.monotonic() - began


def measure(nodes, postgres, seconds):
    """Measures, prints the figures and returns measure → value."""
    ports = [node.port for node in nodes]
    figures = throughput("accept", accept, (nodes, postgres), seconds)
    figures |= throughput("life", work, (nodes, postgres), seconds)
    late, _ = at_once(be_served, ports, seconds, lambda: put_timed(ports, seconds))
    late = sorted(value for values in late for value in values)
    if not late:
        raise RuntimeError("nothing was handed out")
    print(f"lateness: p50 {late[len(late) // 2]:.1f} ms, p99 {late[len(late) * 99 // 100]:.1f} ms, "
          f"most {late[-1]:.1f} ms of {len(late)} tasks, {TIMED_RATE} due a second")
    figures["late p50 ms"] = late[len(late) // 2]
    figures["late p99 ms"] = late[len(late) * 99 // 100]
    took = fail_over(nodes)
    print(f"failover: {took:.1f} s, with leases of {LEASE_MS / 1_000:.0f} s")
    figures["failover s"] = took
    figures["failover of lease"] = took / (LEASE_MS * 1.2 / 1_000)
    return figures


def is_at_rest(node, count):
    connection = http.client.HTTPConnection("127.0.0.1", node.port)
    connection.request("GET", "/v1/cluster")
    view = json.loads(connection.getresponse().read())
    shards = [member["shards"] for member in view["nodes"]]
    return len(shards) == count and max(shards) - min(shards) <= 1 and all(
        shard["node"] for shard in view["shards"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--shards", type=int, default=12)
    parser.add_argument("--csv", type=pathlib.Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    postgres = SyncingPostgres()
    wires = Wires()
    url = f"postgresql://postgres@127.0.0.1:{postgres.port}/cluster"
    options = {"folder": postgres.folder, "database_port": postgres.port, "lease_ms": LEASE_MS,
               "shards": arguments.shards, "database_url": url, "is_reached_directly": True}
    nodes = [Node(f"n{i}", arguments.program, wires, options) for i in range(arguments.nodes)]
    try:
        for node in nodes:
            node.start()
        wait_until(lambda: all(is_at_rest(node, len(nodes)) for node in nodes), 60,
                   "the shards are divided")
        figures = measure(nodes, postgres, arguments.seconds)
        if arguments.csv:
            with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
                table = csv.writer(file)
                table.writerow(["timers", "queue", "measure", "repetition", "value"])
                table.writerows([arguments.nodes, "detent", name, 1, round(value, 3)]
                                for name, value in figures.items())
    finally:
        for node in nodes:
            node.stop()
        wires.stop()
        postgres.stop()


if __name__ == "__main__":
    main()
