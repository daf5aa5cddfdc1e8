#!/usr/bin/env python3
"""failover_test.py PROGRAM: a cluster over a PostgreSQL with a synchronous standby.

The primary is killed and the standby is promoted. All acknowledged tasks must still exist, and each
task must be done once. The nodes must find the new primary by themselves: their URL names both
servers, as libpq allows.
"""

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from nodes import Node, Wires
from private_postgres import PrivatePostgres
from child_programs import free_port, wait_until  # private_postgres knows where it is

LEASE_MS = 2_000
TASKS = 200
OUTAGE_SECONDS = 25


class Standby(PrivatePostgres):
    """A copy that follows a primary. After its promotion it takes the place of the primary."""

    def __init__(self, primary):
        self.programs = primary.programs
        self.folder = primary.folder / "standby"
        self.account = primary.account
        self.port = free_port()
        self.process = None
        self.run("pg_basebackup", "-D", self.folder / "data", "-h", primary.folder, "-p",
                 str(primary.port), "-U", "postgres", "-R", "-X", "stream", "-c", "fast")
        self.start()

    def promote(self):
        self.run("pg_ctl", "promote", "-D", self.folder / "data", "-w")


def ask(nodes, path, body=None, method=None):
    """Returns the answer of the first node that has one. Repeats the request after a 503."""
    until = time.monotonic() + OUTAGE_SECONDS
    data = None if body is None else json.dumps(body).encode()
    while True:
        for node in nodes:
            request = urllib.request.Request(f"http://127.0.0.1:{node.port}{path}", data,
                                             method=method or ("POST" if data else "GET"))
            try:
                with urllib.request.urlopen(request, timeout=5) as response:
                    return json.load(response)
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    raise
            except OSError:
                pass
        if time.monotonic() > until:
            raise TimeoutError(f"no node answers {path}")
        time.sleep(0.05)


def put(nodes, first, count):
    return {ask(nodes[i % len(nodes):] + nodes, "/v1/tasks",
                {"queue": f"q{i % 12}", "key": f"k{i}", "payload": i})["id"]
            for i in range(first, first + count)}


def finish_all(nodes):
    """Leases and completes tasks until all queues are empty. Returns the ids of all completions."""
    done = []
    for queue in range(12):
        while tasks := ask(nodes, f"/v1/queues/q{queue}/lease", {"max": 50})["tasks"]:
            leases = [task["lease"] for task in tasks]
            results = ask(nodes, "/v1/leases/complete", {"leases": leases})["results"]
            done += [task["id"] for task, result in zip(tasks, results)
                     if result.get("status") == "done"]
    return done


def run(program, primary, wires, nodes):
    standby = Standby(primary)
    try:
        # From here on, a write is acknowledged only when the standby has it, too. The standby does
        # not copy this setting.
        primary.run("psql", "-q", "-h", primary.folder, "-p", str(primary.port), "-U", "postgres",
                    "-c", "alter system set synchronous_standby_names = '*'", "-c",
                    "select pg_reload_conf()")
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        url = f"postgresql://postgres@{hosts}/cluster?target_session_attrs=read-write"
        options = {"folder": primary.folder, "database_port": primary.port, "lease_ms": LEASE_MS,
                   "shards": 6, "database_url": url}
        for name in "ab":
            nodes.append(Node(name, program, wires, options))
            nodes[-1].start()
        acknowledged = put(nodes, 0, TASKS)
        held = ask(nodes, "/v1/queues/q0/lease", {"max": 3, "visibility_timeout_ms": 60_000})
        assert len(held["tasks"]) == 3, held
        primary.kill()
        began = time.monotonic()
        standby.promote()
        promoted = time.monotonic()
        acknowledged |= put(nodes, TASKS, TASKS)
        print(f"promoted after {promoted - began:.1f} s, {TASKS} more tasks accepted "
              f"{time.monotonic() - promoted:.1f} s after that")
        assert len(acknowledged) == 2 * TASKS, len(acknowledged)
        done = finish_all(nodes)
        assert len(done) == len(set(done)), "a task was done twice"
        # Leases are only in memory: an open lease is void, or still valid if its node kept it.
        lost = acknowledged - set(done) - {task["id"] for task in held["tasks"]}
        assert not lost, f"lost: {sorted(lost)}"
        for node in nodes:
            node.signal(signal.SIGTERM)
            assert node.wait_for_exit() == 0
    finally:
        standby.stop()


def main():
    primary = PrivatePostgres()
    wires = Wires()
    nodes = []
    try:
        run(sys.argv[1], primary, wires, nodes)
    except (AssertionError, TimeoutError, RuntimeError, subprocess.CalledProcessError):
        for log in sorted(primary.folder.glob("*.log")) + [primary.folder / "standby" / "log"]:
            if log.exists():
                print(f"--- {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
        raise
    finally:
        for node in nodes:
            node.stop()
        wires.stop()
        primary.stop()


if __name__ == "__main__":
    main()
