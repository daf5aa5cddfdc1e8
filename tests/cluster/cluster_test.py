#!/usr/bin/env python3
"""cluster_test.py PROGRAM [--faults kill,pause,…] [--rounds 1 | --minutes N] [--seed N]: a cluster
under load, with random faults.

The cluster has three nodes and its own PostgreSQL. Each round causes each fault once, in an order
that depends on the seed:
- kill: SIGKILL and a new start;
- pause: SIGSTOP for longer than the lease;
- stop: SIGTERM and a new start;
- postgres: all processes of PostgreSQL are killed and started again;
- cut_database: the packets between a node and the database are dropped;
- cut_nodes: the packets of other nodes to a node are dropped.

After each fault the cluster must come to rest: all nodes agree on the owners, and all shards
answer.
At the end, history.py checks what the clients saw, together with the shards that nodes lost by
themselves (losses.py). The test prints figures. Exit code 1: a rule was violated.
"""

import argparse
import collections
import random
import shutil
import signal
import sys
import threading
import time

import losses
from history import TIMED, Fault, History, check
from nodes import Node, Wires
from patience import Patience
from private_postgres import PrivatePostgres, children_of
from workload import PROBE_PERIOD_MS, Client, Clients, now_ms

SHARDS = 8
QUEUES = [TIMED, *(f"orders-{number}" for number in range(11))]
QUIET_SECONDS = 5
REST_SECONDS = 40  # seconds of its own time (patience.py) to come to rest after a fault
DRAIN_SECONDS = 20
HAUNTERS = 16
LATENESS_GOAL_MS = 20
SHARD_BITS = 8  # the low bits of an id are the shard


class Outages:
    """The last answer of each shard to its probe, and the gaps in these answers."""

    def __init__(self):
        self.mutex = threading.Lock()
        self.last = {}
        self.gaps = []  # (shard, from, until): two good answers with a bad answer between them
        self.bad = collections.Counter()

    def asked(self, shard, is_good, at):
        with self.mutex:
            if not is_good:
                self.bad[shard] += 1
            elif self.bad.pop(shard, 0):
                self.gaps.append((shard, self.last.get(shard, at), at))
            if is_good:
                self.last[shard] = at

    def longest(self, start, end):
        """Returns the longest gap that began before `end` and ended after `start`."""
        with self.mutex:
            return max((until - begin for _, begin, until in self.gaps
                        if begin < end and until > start), default=0)

    def longest_since(self, start):
        with self.mutex:
            return max((until - begin for _, begin, until in self.gaps if begin >= start),
                       default=0)


class Trial:
    def __init__(self, arguments):
        self.rng = random.Random(arguments.seed)
        self.lease_ms = arguments.lease_ms
        self.rate = arguments.size / 3
        self.history = History()
        self.outages = Outages()
        self.postgres = PrivatePostgres()
        self.wires = Wires()
        options = {"folder": self.postgres.folder, "database_port": self.postgres.port,
                   "lease_ms": self.lease_ms, "shards": SHARDS}
        self.nodes = [Node(name, arguments.program, self.wires, options) for name in "abc"]
        self.clients = Clients(self.nodes, self.history, QUEUES, arguments.seed)
        self.looker = Client(self.clients, random.Random(0), -1)
        self.longest = collections.defaultdict(list)  # outage of a shard by kind of fault
        self.shares = losses.Shares(self.processes, now_ms)

    # ---- state of the cluster -------------------------------------------------------------------

    def is_at_rest(self, since=0):
        """True if all nodes agree on the owners, the nodes have equal shares, and every probed
        shard has answered."""
        views = []
        for node in self.nodes:
            status, view, *_ = self.looker.call("GET", "/v1/cluster", node=node)
            if status != 200 or len(view["nodes"]) != len(self.nodes):
                return False
            views.append([(shard["node"], shard["epoch"]) for shard in view["shards"]])
        owners = [owner for owner, _ in views[0]]
        counts = [owners.count(node.name) for node in self.nodes]
        is_equal = sum(counts) == SHARDS and max(counts) - min(counts) <= 1
        with self.outages.mutex:
            answered = all(at > since for at in self.outages.last.values())
        return is_equal and answered and all(view == views[0] for view in views)

    def processes(self):
        """Returns the ids of the processes of the cluster and of its database."""
        postmaster = self.postgres.process.pid
        return [node.process.pid for node in self.nodes] + [postmaster, *children_of(postmaster)]

    def wait_for_rest(self, what, since=0):
        """Waits until the cluster is at rest. If that takes too long, it is a violation. The checks
        of what the clients saw run even then."""
        patience = Patience(REST_SECONDS, self.processes)
        while not self.is_at_rest(since):
            if patience.is_over():
                views = [self.looker.call("GET", "/v1/cluster", node=node)[:2]
                         for node in self.nodes]
                self.clients.failures.append(
                    f"no rest in {REST_SECONDS} s of its own after {what}: {views}")
                return
            time.sleep(0.1)
        time.sleep(2 * PROBE_PERIOD_MS / 1_000)  # until probes have ended the last gaps

    # ---- faults ---------------------------------------------------------------------------------

    def sleep(self, leases_from, leases_to):
        time.sleep(self.rng.uniform(leases_from, leases_to) * self.lease_ms / 1_000)

    # Each function causes a fault. If the node can have handed out leases that are lost, the
    # function
    # returns the last time of such a hand-out.

    def kill(self, node):
        node.signal(signal.SIGKILL)
        node.wait_for_exit()
        gone = now_ms()
        self.sleep(0, 1.3)
        node.start()
        return gone

    def pause(self, node):
        stands_still = threading.Event()
        for _ in range(HAUNTERS):
            self.clients.start(Client.haunt, node, stands_still)
        time.sleep(0.5)  # until they have their leases
        node.stand_still()
        still = now_ms()
        stands_still.set()
        self.sleep(1.2, 1.5)
        node.signal(signal.SIGCONT)
        return still

    def stop(self, node):
        node.signal(signal.SIGTERM)
        code = node.wait_for_exit()
        if code != 0:
            raise AssertionError(f"node {node.name} exited with {code} after SIGTERM")
        node.start()

    def restart_postgres(self, _):
        self.postgres.kill()
        time.sleep(self.rng.uniform(0, 2))
        self.postgres.start()
        return now_ms() + self.lease_ms  # the nodes notice the lost store with the next write

    def cut_database(self, node):
        node.database.cut()
        cut = now_ms()
        self.sleep(1.2, 1.5)
        node.database.mend()
        return cut + self.lease_ms

    def cut_nodes(self, node):
        node.others.cut()
        self.sleep(0.3, 1)
        node.others.mend()

    def shards_of(self, node, kind):
        if kind == "postgres":
            return range(SHARDS)
        _, view, *_ = self.looker.call("GET", "/v1/cluster", node=node)
        return frozenset(shard["shard"] for shard in view["shards"] if shard["node"] == node.name)

    def do_fault(self, kind):
        """Causes a fault, waits until the cluster is at rest, and records the outages of shards."""
        run = {"kill": self.kill, "pause": self.pause, "stop": self.stop,
               "postgres": self.restart_postgres, "cut_database": self.cut_database,
               "cut_nodes": self.cut_nodes}[kind]
        node = self.rng.choice(self.nodes)
        fault = Fault(kind, now_ms(), float("inf"), shards=self.shards_of(node, kind))
        self.history.faults.append(fault)
        node.is_sick = kind != "postgres"
        fault.voids_until = run(node) or 0
        fault.end = now_ms()
        self.wait_for_rest(f"{kind} of {node.name}", now_ms())
        node.is_sick = False
        rest = now_ms()
        comes_back = fault.end if kind in ("kill", "stop") else rest
        longest = self.outages.longest(fault.start, comes_back)
        self.longest[kind].append(longest)
        # A returning node takes its share of the shards from the others.
        self.longest["coming back"].append(self.outages.longest_since(comes_back))
        print(f"{kind:12} {'' if kind == 'postgres' else node.name:1} for "
              f"{(fault.end - fault.start) / 1000:4.1f} s; a shard was away for at most "
              f"{longest / 1000:4.1f} s; at rest {(rest - fault.end) / 1000:4.1f} s after it",
              flush=True)

    # ---- the whole test -------------------------------------------------------------------------

    def begin(self):
        for node in self.nodes:
            node.start()
        self.shares.thread.start()
        self.wait_for_rest("its start")
        queues = {}
        for number in range(1_000):
            task = {"queue": f"probe-{number}", "key": "probe", "delay": "30d", "payload": "probe"}
            status, answer, *_ = self.looker.call("POST", "/v1/tasks", task)
            if status == 201:
                queues.setdefault(int(answer["id"]) % (1 << SHARD_BITS), task["queue"])
            if len(queues) == SHARDS:
                break
        self.clients.working.set()
        self.clients.producing.set()
        for shard, queue in queues.items():
            self.clients.start(Client.probe, self.outages, shard, queue)
        for _ in range(3):
            self.clients.start(Client.produce, self.rate)
        for queues in [QUEUES] * 8 + [[TIMED]] * 3:
            self.clients.start(Client.work, queues)

    def epochs(self):
        _, view, *_ = self.looker.call("GET", "/v1/cluster")
        return [shard["epoch"] for shard in view.get("shards", [])]

    def be_quiet(self, seconds):
        """Runs without faults and records the time as a quiet phase, unless a shard moved. On a
        busy machine, a node can get no processor time for a whole lease and then lose its shards.
        The new owner hands out new tasks before it has read all old tasks."""
        start = now_ms()
        before = self.epochs()
        time.sleep(seconds)
        if self.epochs() == before:
            self.history.quiet.append((start, now_ms()))
        else:
            print("it was not quiet: a shard moved by itself")

    def drain(self):
        """Waits until all due tasks are done, and then reads the tasks that are left."""
        self.clients.producing.clear()
        until = time.monotonic() + DRAIN_SECONDS
        while self.clients.open and time.monotonic() < until:
            time.sleep(1)
            if len(self.clients.open) < 30:  # perhaps only the answer to their end was lost
                for identity, name in list(self.clients.open.items()):
                    self.looker.read(identity, name)
        self.clients.working.clear()
        for thread in self.clients.threads:
            thread.join()
        for identity, name in list(self.clients.open.items()):
            self.looker.read(identity, name)

    def run(self, faults, goes_on):
        self.begin()
        self.be_quiet(QUIET_SECONDS)
        rounds = 0
        while goes_on(rounds) and not self.clients.failures:
            rounds += 1
            for kind in self.rng.sample(faults, len(faults)):
                self.do_fault(kind)
                if self.clients.failures:
                    break
                time.sleep(self.rng.uniform(0, 1))
        self.drain()
        self.shares.stop()
        found = losses.losses(node.log.read_text() for node in self.nodes)
        self.clients.failures += losses.without_cause(found, self.history.faults, self.shares,
                                                      self.lease_ms)
        self.history.faults += losses.as_faults(found)
        return check(self.history)

    def end(self, keep_logs=None):
        self.clients.working.clear()
        for node in self.nodes:
            node.stop()
        if keep_logs:
            shutil.copytree(self.postgres.folder, keep_logs, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("data", ".s.*"))
        self.postgres.stop()
        self.wires.stop()


def show(trial, report):
    print(", ".join(f"{count} {what}" for what, count in sorted(report.figures.items())))
    print(f"{trial.clients.unavailable} answers were 503; "
          f"{len(trial.clients.open)} acknowledged tasks had not ended when it was over")
    late = sorted(report.lateness)
    if late:
        print(f"lateness in quiet running: p50 {late[len(late) // 2]:.0f} ms, "
              f"p99 {late[len(late) * 99 // 100]:.0f} ms of {len(late)}")
    for kind, gaps in trial.longest.items():
        print(f"longest outage of a shard by {kind}: {max(gaps) / 1000:.1f} s in {len(gaps)}")
    for text in trial.clients.failures + report.violations:
        print(f"VIOLATED {text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    every = "kill,pause,stop,postgres,cut_database,cut_nodes"
    parser.add_argument("--faults", default=every)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="run rounds for this long")
    parser.add_argument("--size", type=float, default=30, help="requests of producers per second")
    parser.add_argument("--lease-ms", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--idle", action="store_true",
                        help="fail if lateness or outages miss their goals; needs an idle machine")
    parser.add_argument("--keep", metavar="FOLDER", help="copy the logs there after a failure")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, faults {arguments.faults}", flush=True)
    began = time.monotonic()

    def goes_on(rounds):
        if arguments.minutes is None:
            return rounds < arguments.rounds
        return time.monotonic() - began < arguments.minutes * 60

    trial = Trial(arguments)
    is_good = False
    try:
        report = trial.run(arguments.faults.split(","), goes_on)
        show(trial, report)
        is_good = not trial.clients.failures and not report.violations
        if arguments.idle:
            late = sorted(report.lateness)
            failover = 1.4 * arguments.lease_ms + 500  # a lease, two heartbeats, the opening
            is_good &= bool(late) and late[len(late) * 99 // 100] <= LATENESS_GOAL_MS
            is_good &= max(trial.longest["kill"], default=0) <= failover
    finally:
        trial.end(arguments.keep if not is_good else None)
    print(f"{'good' if is_good else 'BAD'} in {time.monotonic() - began:.0f} s", flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
