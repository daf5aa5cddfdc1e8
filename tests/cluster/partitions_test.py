#!/usr/bin/env python3
"""partitions_test.py PROGRAM [--seed N]: a queue with partitions on a cluster of three nodes.

First test: producers put tasks with keys, each of them twice, and workers wait for tasks, all
through random nodes. One owner of partitions is killed and started again. The test checks that
- a key makes one task;
- every task is handed out and completed, and does not come back afterwards;
- the queue is on several nodes at the same time;
- the queue is empty at the end and can be removed.

Second test: the leases of the nodes are long, and one node is paused (SIGSTOP). The tasks of all
other partitions must be handed out before the leases of the paused node expire, over HTTP and to
beanstalk clients. After the pause, its own tasks must be handed out, too.

Each cluster has its own PostgreSQL. Exit code 1: a rule was violated.
"""

import http.client
import json
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

from beanstalk_test import Beanstalk
from stand import Stand, run_trials
from child_programs import wait_until  # stand knows where it is

SHARDS = 8
PARTITIONS = 6
TASKS = 400
WORKERS = 6
PATIENCE = 60  # seconds until a step that is not finished fails
VISIBILITY = 60  # seconds until a task of a lease with a lost answer comes back
LONG_LEASE_MS = 30_000
HUNG_TASKS = 60
SHARD_BITS = 8  # the low bits of an id are the shard
QUEUE = "/v1/queues/hot"


class Trial:
    def __init__(self, program, seed):
        self.rng = random.Random(seed)
        self.stand = Stand(program, nodes=3, shards=SHARDS)
        self.mutex = threading.Lock()
        self.ids = {}  # task id by key
        self.completed = set()
        self.violations = []

    def ask(self, rng, method, path, body=None):
        """Asks random nodes until one gives an answer other than 503."""
        while True:
            node = rng.choice(list(self.stand.nodes.values()))
            request = urllib.request.Request(
                f"http://127.0.0.1:{node.port}{path}", method=method,
                data=None if body is None else json.dumps(body).encode())
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    return error.code, json.load(error)
                threading.Event().wait(0.05)
            except (OSError, http.client.HTTPException, ValueError):  # also for truncated answers
                threading.Event().wait(0.05)

    def violated(self, text):
        with self.mutex:
            self.violations.append(text)

    def produce(self, seed, keys):
        rng = random.Random(seed)
        for key in keys:
            task = {"queue": "hot", "key": key, "payload": key}
            answers = [self.ask(rng, "POST", "/v1/tasks", task) for _ in range(2)]
            ids = {answer.get("id") for _, answer in answers}
            if len(ids) != 1 or any(status not in (200, 201) for status, _ in answers):
                self.violated(f"key {key} made {answers}")
            with self.mutex:
                self.ids[key] = ids.pop()

    def work(self, seed):
        rng = random.Random(seed)
        while not self.is_done():
            status, leased = self.ask(rng, "POST", f"{QUEUE}/lease", {"max": 5, "wait": "1s"})
            if status != 200:
                self.violated(f"a lease was answered {status}: {leased}")
                return
            for task in leased["tasks"]:
                with self.mutex:
                    if task["id"] in self.completed:
                        self.violations.append(f"task {task['id']} came back")
                _, ended = self.ask(rng, "POST", "/v1/leases/complete",
                                    {"leases": [task["lease"]]})
                if ended["results"][0].get("status") == "done":
                    with self.mutex:
                        self.completed.add(task["id"])

    def is_done(self):
        """True if all keys have made their tasks and no task is left. If a node died before it
        answered a completion, only the counts of the queue show that the task is done."""
        with self.mutex:
            if len(self.ids) < TASKS:
                return False
            if set(self.ids.values()) <= self.completed:
                return True
        _, queue = self.ask(self.rng, "GET", QUEUE)
        return sum(queue[state] for state in ("scheduled", "ready", "leased", "dead")) == 0

    def owners(self):
        """Returns the nodes and shards that have partitions of the queue, by the ids of tasks."""
        _, cluster = self.ask(self.rng, "GET", "/v1/cluster")
        shards = {int(task) % (1 << SHARD_BITS) for task in list(self.ids.values())}
        return {cluster["shards"][shard]["node"] for shard in shards}, shards

    def run(self):
        self.stand.start()
        status, queue = self.ask(self.rng, "PATCH", QUEUE, {"partitions": PARTITIONS})
        if status != 200 or queue["settings"]["partitions"] != PARTITIONS:
            self.violated(f"the queue was not made: {status} {queue}")
        status, refused = self.ask(self.rng, "PATCH", QUEUE, {"partitions": 2})
        if status != 409:
            self.violated(f"another number was answered {status}: {refused}")
        keys = [f"k-{number}" for number in range(TASKS)]
        threads = [threading.Thread(target=self.produce, args=(n, keys[n::3]), daemon=True)
                   for n in range(3)]
        threads += [threading.Thread(target=self.work, args=(100 + n,), daemon=True)
                    for n in range(WORKERS)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(self.ids) > TASKS // 3, PATIENCE, "a third of the tasks is made")
        nodes, shards = self.owners()
        if len(shards) != PARTITIONS or len(nodes) < 2:
            self.violated(f"the tasks are on shards {shards} of {nodes}")
        victim = self.stand.nodes[self.rng.choice(sorted(nodes))]
        victim.signal(signal.SIGKILL)
        victim.wait_for_exit()
        victim.start()
        for thread in threads:
            thread.join(PATIENCE)
        if any(thread.is_alive() for thread in threads):
            self.violated(f"{len(self.ids)} tasks made and {len(self.completed)} completed only")
        print(f"{len(self.ids)} tasks on {len(shards)} shards of {sorted(nodes)}, "
              f"{victim.name} killed, {len(self.completed)} completions acknowledged")
        status, removed = self.ask(self.rng, "DELETE", QUEUE)
        if status != 200:
            self.violated(f"the empty queue was not removed: {status} {removed}")


class HangTrial(Trial):
    """Sends all requests to one node, while another node is paused."""

    def __init__(self, program, seed):
        self.rng = random.Random(seed)
        self.stand = Stand(program, nodes=3, shards=SHARDS, lease_ms=LONG_LEASE_MS,
                           beanstalk="127.0.0.1:0")
        self.mutex = threading.Lock()
        self.ids = {}
        self.completed = set()
        self.violations = []

    def send(self, method, path, body):
        """Sends a request to node a. Returns None after a 503."""
        request = urllib.request.Request(
            self.stand.url(self.stand.nodes["a"]) + path, method=method,
            data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            return None

    def shards_of(self, name):
        """Returns the shards whose leases this node holds, as node a sees it."""
        shards = self.send("GET", "/v1/cluster", None)["shards"]
        return {shard["shard"] for shard in shards if shard["node"] == name}

    def take_over_http(self):
        leased = self.send("POST", f"{QUEUE}/lease", {"max": 3, "wait": "2s"}) or {"tasks": []}
        if leased["tasks"]:
            self.send("POST", "/v1/leases/complete",
                      {"leases": [task["lease"] for task in leased["tasks"]]})
        return {task["id"] for task in leased["tasks"]}

    def take_over_beanstalk(self, client):
        words, _ = client.ask("reserve-with-timeout 2")
        if words[0] != "RESERVED":
            return set()
        client.ask(f"delete {words[1]}")
        return {words[1]}

    def is_gone(self, task):
        """True if the task no longer exists. The answer to its end does not tell this, because its
        shard may have moved at that moment."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                if self.send("GET", f"/v1/tasks/{task}", None):
                    return False
            except urllib.error.HTTPError as error:
                if error.code != 404:
                    raise
                return True
            threading.Event().wait(0.05)
        self.violated(f"nobody tells of task {task}")
        return False

    def take(self, wanted, client, is_lost):
        """Takes tasks until all wanted tasks are completed."""
        turn = 0
        until = time.monotonic() + VISIBILITY + PATIENCE
        while not wanted <= self.completed:
            if time.monotonic() > until:
                self.violated(f"tasks {wanted - self.completed} were not taken")
                return
            turn += 1
            taken = self.take_over_http() if turn % 2 else self.take_over_beanstalk(client)
            if taken & self.completed:
                self.violated(f"tasks {taken & self.completed} came back")
            self.completed |= {task for task in taken if self.is_gone(task)}
            if is_lost():
                self.violated("the leases of the node that stands still ran out before "
                              f"{len(wanted)} tasks of the others were taken")
                return

    def run(self):
        self.stand.start()
        wait_until(lambda: self.send("PATCH", QUEUE, {"partitions": PARTITIONS}), PATIENCE,
                   "the queue is made")
        for number in range(HUNG_TASKS):
            task = {"queue": "hot", "key": f"h-{number}", "payload": number}
            self.ids[number] = self.ask(self.rng, "POST", "/v1/tasks", task)[1]["id"]
        nodes, _ = self.owners()
        victim = self.stand.nodes[self.rng.choice(sorted(nodes - {"a"}))]
        had = self.shards_of(victim.name)
        tasks = set(self.ids.values())
        away = {task for task in tasks if int(task) % (1 << SHARD_BITS) in had}
        client = Beanstalk(self.stand.nodes["a"].beanstalk_port)
        client.ask("watch hot")
        victim.stand_still()
        self.take(tasks - away, client, lambda: self.shards_of(victim.name) != had)
        victim.signal(signal.SIGCONT)
        self.take(tasks, client, lambda: False)
        print(f"{victim.name} stood still with {len(away)} of {len(tasks)} tasks")
        client.close()


if __name__ == "__main__":
    sys.exit(run_trials([Trial, HangTrial], __doc__))
