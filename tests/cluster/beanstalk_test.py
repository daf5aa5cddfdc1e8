#!/usr/bin/env python3
"""beanstalk_test.py PROGRAM [--seed N]: beanstalk clients of a cluster of three nodes.

The cluster has its own PostgreSQL. Producers put jobs into eight tubes through any node. Workers
watch all tubes, reserve jobs and delete them. During this, one owner of shards is killed, and
another is stopped. The clients use raw sockets. The test checks that
- no acknowledged job is lost;
- no job comes back after its deletion was acknowledged;
- all ids are different;
- a job is reserved twice only because of a fault or a lost answer.

Exit code 1: a rule was violated.
"""

import random
import signal
import socket
import sys
import threading
import time

from stand import Stand, run_trials
from child_programs import wait_until  # stand knows where it is

SHARDS = 8
TUBES = [f"tube-{number}" for number in range(8)]
WORKERS = 6
REST_SECONDS = 60


class Beanstalk:
    """A client that closes its connection at the first error."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.file = self.socket.makefile("rb")
        self.may_hold = False  # the connection may hold a job, because no answer to a delete came

    def ask(self, command, body=None):
        text = command.encode() + b"\r\n"
        self.socket.sendall(text if body is None else text + body + b"\r\n")
        words = self.file.readline().decode().split()
        if not words:
            raise ConnectionError("the connection is closed")
        if words[0] in ("RESERVED", "FOUND", "OK"):
            data = self.file.read(int(words[-1]) + 2)[:-2]
            return words, data
        return words, None

    def close(self):
        self.socket.close()


class Trial:
    def __init__(self, program, seed):
        self.rng = random.Random(seed)
        self.stand = Stand(program, nodes=3, shards=SHARDS, beanstalk="127.0.0.1:0")
        self.nodes = list(self.stand.nodes.values())
        self.mutex = threading.Lock()
        self.producing = threading.Event()
        self.working = threading.Event()
        self.accepted = {}  # id by body
        self.deleted = set()  # bodies whose deletion was acknowledged
        self.unclear = set()  # (body, number of reserve) of deletions without an answer
        self.held = set()
        self.reserved = 0
        self.may_come_again = 0
        self.violations = []

    def connect(self, rng):
        """Connects to a random node, and tries again until one answers."""
        while True:
            try:
                return Beanstalk(rng.choice(self.nodes).beanstalk_port)
            except OSError:
                time.sleep(0.05)

    def produce(self, number):
        rng = random.Random(self.rng.random())
        client = self.connect(rng)
        count = 0
        while self.producing.is_set():
            count += 1
            body = f"{number}-{count}"
            try:
                client.ask(f"use {rng.choice(TUBES)}")
                words, _ = client.ask(f"put 1024 {rng.choice([0, 0, 0, 1])} 15 {len(body)}",
                                      body.encode())
            except OSError:
                client = self.connect(rng)
                continue
            if words[0] == "INSERTED":
                with self.mutex:
                    if words[1] in self.accepted.values():
                        self.violations.append(f"the id {words[1]} was given twice")
                    self.accepted[body] = words[1]
            elif words[0] != "INTERNAL_ERROR":
                self.violations.append(f"put was answered {words}")
            time.sleep(0.01)

    def work(self):
        rng = random.Random(self.rng.random())
        while self.working.is_set():
            client = self.connect(rng)
            try:
                for tube in TUBES:
                    client.ask(f"watch {tube}")
                while self.working.is_set():
                    self.work_once(client)
            except OSError:
                with self.mutex:
                    self.may_come_again += 1
            client.close()

    def work_once(self, client):
        words, body = client.ask("reserve-with-timeout 2")
        if words[0] == "TIMED_OUT" or (words[0] == "DEADLINE_SOON" and client.may_hold):
            return
        if words[0] != "RESERVED":
            self.violations.append(f"reserve was answered {words}")
            return
        body = body.decode()
        with self.mutex:
            self.reserved += 1
            if body in self.deleted:
                self.violations.append(f"{body} came back after its deletion")
            self.held.add(body)
            attempt = (body, self.reserved)
            self.unclear.add(attempt)  # until the answer has come
        words, _ = client.ask(f"delete {words[1]}")
        with self.mutex:
            self.held.discard(body)
            if words[0] != "INTERNAL_ERROR":
                self.unclear.discard(attempt)
            if words[0] == "DELETED":
                self.deleted.add(body)
                return
            self.may_come_again += 1  # the owner of the job is or was away
            if words[0] == "INTERNAL_ERROR":
                client.may_hold = True
            elif words[0] != "NOT_FOUND":
                self.violations.append(f"delete was answered {words}")

    def stats(self, node):
        client = Beanstalk(node.beanstalk_port)
        words, text = client.ask("stats")
        client.close()
        if words[0] != "OK":
            return {}
        return dict(line.split(": ", 1) for line in text.decode().splitlines() if ": " in line)

    def is_at_rest(self):
        time.sleep(0.1)
        try:
            return all(self.stats(node) for node in self.nodes)
        except OSError:
            return False

    def progress(self, count):
        """Blocks until `count` more jobs are deleted."""
        goal = len(self.deleted) + count
        wait_until(lambda: time.sleep(0.05) or len(self.deleted) >= goal, REST_SECONDS,
                   f"{count} more jobs are deleted")

    def fault(self, node, number):
        with self.mutex:
            self.may_come_again += len(self.held) + WORKERS  # held jobs, and jobs on their way
        node.signal(number)
        code = node.wait_for_exit()
        if number == signal.SIGTERM and code != 0:
            self.violations.append(f"node {node.name} exited with {code} after SIGTERM")
        self.progress(100)  # without this node
        node.start()
        wait_until(self.is_at_rest, REST_SECONDS, "all nodes answer for all shards")

    def run(self):
        self.stand.start()
        wait_until(self.is_at_rest, REST_SECONDS, "all nodes answer for all shards")
        self.producing.set()
        self.working.set()
        producers = [threading.Thread(target=self.produce, args=[n], daemon=True)
                     for n in range(3)]
        workers = [threading.Thread(target=self.work, daemon=True) for _ in range(WORKERS)]
        for thread in producers + workers:
            thread.start()
        self.progress(100)
        victims = self.rng.sample(self.nodes, 2)
        self.fault(victims[0], signal.SIGKILL)
        self.fault(victims[1], signal.SIGTERM)
        self.progress(100)
        self.producing.clear()
        for thread in producers:
            thread.join()
        self.drain()
        self.working.clear()
        for thread in workers:
            thread.join()
        self.check()

    def drain(self):
        def jobs():
            stats = self.stats(self.nodes[0])
            return [int(stats.get(f"current-jobs-{state}", 1))
                    for state in ("ready", "reserved", "delayed", "buried")]
        wait_until(lambda: time.sleep(0.1) or sum(jobs()) == 0, REST_SECONDS, "no job is left")

    def check(self):
        perhaps_deleted = self.deleted | {body for body, _ in self.unclear}
        lost = [body for body in self.accepted if body not in perhaps_deleted]
        if lost:
            self.violations.append(f"{len(lost)} acknowledged jobs are lost, as {lost[0]}")
        twice = self.reserved - len(perhaps_deleted)
        if twice > self.may_come_again:
            self.violations.append(f"{twice} jobs came twice, {self.may_come_again} might have")
        print(f"{len(self.accepted)} accepted, {self.reserved} reserved, {len(self.deleted)} "
              f"deleted, {len(self.unclear)} not clear, {twice} came twice, of "
              f"{self.may_come_again} that might have")


if __name__ == "__main__":
    sys.exit(run_trials([Trial], __doc__))
