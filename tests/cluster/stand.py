#!/usr/bin/env python3
"""stand.py PROGRAM [--nodes 2] [--shards 4] [--lease-ms 2000]: a cluster for tests of other parts.

Starts a cluster and prints one line of JSON, {"nodes": {NAME: URL}}, when the shards are divided
among the nodes. Then it reads commands, one per line: `kill NAME` (SIGKILL) or `start NAME`. It
answers each command with such a line of the running nodes. It ends at the end of standard input.
"""

import argparse
import json
import random
import sys
import urllib.error
import urllib.request

from nodes import Node, Wires
from private_postgres import PrivatePostgres
from child_programs import wait_until  # private_postgres knows where it is

PATIENCE = 30  # seconds


class Stand:
    def __init__(self, program, nodes=2, shards=4, lease_ms=2000, beanstalk="off", flags=()):
        self.postgres = PrivatePostgres()
        self.wires = Wires()
        options = {"folder": self.postgres.folder, "database_port": self.postgres.port,
                   "lease_ms": lease_ms, "shards": shards, "beanstalk": beanstalk,
                   "flags": flags}
        self.nodes = {name: Node(name, program, self.wires, options)
                      for name in "abcdefgh"[:nodes]}

    def start(self, *names):
        """Starts nodes, all by default. Waits until all shards are divided among the running nodes
        and open."""
        for name in names or self.nodes:
            self.nodes[name].start()
        running = [self.nodes[name] for name in self.urls()]
        wait_until(lambda: all(self.is_settled(node, running) for node in running), PATIENCE,
                   "the shards are divided among the nodes")

    def is_settled(self, node, running):
        try:
            told = json.load(self.get(node, "/v1/cluster"))
            counts = [other["shards"] for other in told["nodes"]]
            self.get(node, "/v1/queues")  # succeeds only if all shards answer
        except urllib.error.HTTPError:
            return False
        return len(counts) == len(running) and max(counts) - min(counts) <= 1

    def get(self, node, path):
        return urllib.request.urlopen(self.url(node) + path, timeout=PATIENCE)

    def url(self, node):
        return f"http://127.0.0.1:{node.port}"

    def urls(self):
        return {name: self.url(node) for name, node in self.nodes.items()
                if node.process and node.process.poll() is None}

    def stop(self):
        for node in self.nodes.values():
            node.stop()
        self.postgres.stop()
        self.wires.stop()


def run_trials(kinds, description):
    """The `main` of a test: PROGRAM [--seed N]. Each kind(program, seed) has a `stand`, run(), and
    `violations`, a list of violated rules. Returns the exit code."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    violations = []
    for kind in kinds:
        trial = kind(arguments.program, arguments.seed)
        try:
            trial.run()
        finally:
            for text in trial.violations:  # also after an exception
                print(f"VIOLATED {text}", flush=True)
            trial.stand.stop()
        violations += trial.violations
    return 1 if violations else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--lease-ms", type=int, default=2000)
    stand = Stand(**vars(parser.parse_args()))
    try:
        stand.start()
        print(json.dumps({"nodes": stand.urls()}), flush=True)
        for line in sys.stdin:
            verb, name = line.split()
            stand.start(name) if verb == "start" else stand.nodes[name].stop()
            print(json.dumps({"nodes": stand.urls()}), flush=True)
    finally:
        stand.stop()


if __name__ == "__main__":
    main()
