#!/usr/bin/env python3
"""partitions_test.py PROGRAM [--seed N]: a queue with partitions on a cluster of three nodes over a
PostgreSQL of its own, through which tasks go while one of its owners is killed and comes back.

Producers put tasks with keys, and each of them twice, through any node; workers wait for tasks at
any node. What must be true of it: a key makes one task; every task is handed out and completed, and
none comes back after that; the queue is on several nodes at once; at the end it is empty, and can
be removed. Exit 1 when something was violated.
"""

import argparse
import http.client
import json
import random
import signal
import sys
import threading
import urllib.error
import urllib.request

from stand import Stand
from child_programs import wait_until  # stand knows where it is

SHARDS = 8
PARTITIONS = 6
TASKS = 400
WORKERS = 6
PATIENCE = 60  # seconds in which all must be done
SHARD_BITS = 8  # of an id, the low ones
QUEUE = "/v1/queues/hot"


class Trial:
    def __init__(self, program, seed):
        self.rng = random.Random(seed)
        self.stand = Stand(program, nodes=3, shards=SHARDS)
        self.mutex = threading.Lock()
        self.ids = {}  # by key
        self.completed = set()
        self.violations = []

    def ask(self, rng, method, path, body=None):
        """Of any node, until one answers other than that it cannot just now."""
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
            except (OSError, http.client.HTTPException, ValueError):  # cut short, too
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
        """All keys have made their task, and no task is left: of a completion that was answered
        with nothing, because its node died, only the queue tells."""
        with self.mutex:
            if len(self.ids) < TASKS:
                return False
            if set(self.ids.values()) <= self.completed:
                return True
        _, queue = self.ask(self.rng, "GET", QUEUE)
        return sum(queue[state] for state in ("scheduled", "ready", "leased", "dead")) == 0

    def owners(self):
        """Which nodes have partitions of the queue, by the ids of tasks."""
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
        threads = [threading.Thread(target=self.produce, args=(n, keys[n::3])) for n in range(3)]
        threads += [threading.Thread(target=self.work, args=(100 + n,)) for n in range(WORKERS)]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    trial = Trial(arguments.program, arguments.seed)
    try:
        trial.run()
    finally:
        trial.stand.stop()
    for text in trial.violations:
        print(f"VIOLATED {text}")
    return 1 if trial.violations else 0


if __name__ == "__main__":
    sys.exit(main())
