#!/usr/bin/env python3
"""clients_test.py PROGRAM CPP-WORKER GO-WORKER [NODE]: the workers of all clients on a cluster.

The cluster has three nodes and its own PostgreSQL. Each worker has a queue with partitions on all
nodes, and holds tasks of all shards while faults happen:
- A node is cut off from the others. Only the extensions of its leases fail. No worker may lose a
  lease, and each task must be handed out once.
- A node is stopped (SIGTERM) and passes its leases on. The same rules hold.
- PostgreSQL and a node are killed, which makes leases void. No task may be lost.

In addition, one call of the Python client completes leases of all shards while one shard is away.
"""

import collections
import json
import pathlib
import subprocess
import sys
import threading
import unittest

from stand import Stand
from child_programs import die_with_parent, wait_until  # stand knows where it is

CLIENTS = pathlib.Path(__file__).resolve().parent.parent / "clients"
sys.path.insert(0, str(CLIENTS.parent.parent / "clients" / "python"))
import detent  # noqa: E402  (needs the path above)

SHARDS = 6
TASKS = 30  # the number of tasks that a worker holds
PATIENCE = 120  # seconds until a hanging test fails


class WorkerProgram:
    """A worker process that reads commands and prints lines. Thread-safe."""

    def __init__(self, queue, command, url):
        self.queue = queue
        self.process = subprocess.Popen(
            [*map(str, command), url, queue], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, preexec_fn=die_with_parent)
        self.mutex = threading.Lock()
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.mutex:
                self.lines.append(line.rstrip("\n"))

    def told(self, word):
        """Returns the rests of the lines that begin with this word."""
        with self.mutex:
            return [line[len(word) + 1:] for line in self.lines if line.startswith(word + " ")]

    def direct(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def forget(self):
        with self.mutex:
            self.lines.clear()


def commands():
    found = {"python": [sys.executable, CLIENTS / "python" / "cluster_worker.py"],
             "cpp": [CPP_WORKER]}
    dist = CLIENTS.parent.parent / "clients" / "typescript" / "dist" / "index.js"
    if NODE and pathlib.Path(NODE).exists() and dist.exists():
        found["typescript"] = [NODE, CLIENTS / "typescript" / "cluster_worker.mjs"]
    if pathlib.Path(GO_WORKER).exists():
        found["go"] = [GO_WORKER]
    return found


class Clients(unittest.TestCase):
    def setUp(self):
        self.stand = Stand(PROGRAM, nodes=3, shards=SHARDS)
        self.addCleanup(self.stand.stop)
        self.stand.start()
        url = self.stand.url(self.stand.nodes["a"])
        self.client = detent.Client(url, retry_for=60)
        self.workers = {}
        for language, command in commands().items():
            self.client.change_queue(language, partitions=SHARDS)
            self.workers[language] = worker = WorkerProgram(language, command, url)
            self.addCleanup(worker.process.kill)

    def schedule(self, queue, first):
        made = self.client.schedule_many([detent.NewTask(queue, n, key=str(n))
                                          for n in range(first, first + TASKS)])
        self.assertFalse([one for one in made if isinstance(one, detent.DetentError)])

    def hold(self, first):
        """Makes each worker hold its tasks, which are on all shards."""
        for queue, worker in self.workers.items():
            worker.direct("hold")
            worker.forget()
            self.schedule(queue, first)
        for queue in self.workers:
            self.wait_for(lambda queue=queue: self.counts(queue).leased == TASKS,
                          f"the worker of {queue} holds its tasks")

    def counts(self, queue):
        return self.client.queue(queue)

    def wait_for(self, is_so, what):
        wait_until(is_so, PATIENCE, what)

    def let_go(self, first, *, once):
        """Lets the handlers return, and waits until all tasks are done. Checks that each task was
        handed out, and with `once` that it was handed out only once."""
        for worker in self.workers.values():
            worker.direct("go")
        for queue, worker in self.workers.items():
            def is_empty(queue=queue):
                now = self.counts(queue)
                return now.scheduled + now.ready + now.leased + now.dead == 0

            self.wait_for(is_empty, f"all tasks of {queue} are done")
            began = collections.Counter(worker.told("began"))
            self.assertEqual(set(began), {str(n) for n in range(first, first + TASKS)}, queue)
            if once:
                self.assertEqual(set(began.values()), {1}, (queue, worker.told("error")))
                self.assertEqual(worker.told("abandoned"), [], (queue, worker.told("error")))

    def test_leases_are_kept_while_a_shard_is_away(self):
        stand = self.stand
        b, c = stand.nodes["b"], stand.nodes["c"]

        with self.subTest("a node is cut off from the others"):
            self.hold(0)
            b.others.refuse()
            for queue, worker in self.workers.items():
                self.wait_for(lambda worker=worker: len(worker.told("error")) >= 2,
                              f"the worker of {queue} fails to extend leases")
            for worker in self.workers.values():
                worker.direct("go")
            for queue, worker in self.workers.items():
                self.wait_for(lambda worker=worker: len(worker.told("done")) > 0,
                              f"handlers of {queue} return")
            b.others.mend()
            self.let_go(0, once=True)
            for queue, worker in self.workers.items():
                lost = [error for error in worker.told("error") if "was lost" in error]
                self.assertEqual([error for error in lost if "earlier report" not in error], [])

        with self.subTest("one call for leases of all shards"):
            self.client.change_queue("direct", partitions=SHARDS)
            self.schedule("direct", 0)
            leases = []
            self.wait_for(lambda: self.lease_more(leases), "all tasks are leased")
            client = detent.Client(stand.url(stand.nodes["a"]), retry_for=PATIENCE)
            pause = threading.Event()  # never set; used only to wait
            asked_again = []

            def wait(seconds):
                asked_again.append(seconds)
                b.others.mend()
                pause.wait(seconds)

            client._http._wait = wait
            b.others.refuse()
            statuses = client.complete(leases)
            self.assertTrue(asked_again)
            self.assertLessEqual(set(statuses), {"done", "conflict"})
            self.assertEqual(self.counts("direct").leased, 0)
            self.assertGreater(statuses.count("done"), TASKS // 3)

        with self.subTest("a node is stopped"):
            self.hold(1000)
            c.process.terminate()
            for worker in self.workers.values():
                worker.direct("go")
            self.assertEqual(c.wait_for_exit(), 0)
            self.let_go(1000, once=True)
            stand.start("c")

        with self.subTest("PostgreSQL and a node are killed"):
            self.hold(2000)
            stand.postgres.kill()
            b.stop()
            for worker in self.workers.values():
                worker.direct("go")
            stand.postgres.start()
            stand.start("b")
            self.let_go(2000, once=False)

        for queue, worker in self.workers.items():
            worker.direct("stop")
            self.assertEqual(worker.process.wait(PATIENCE), 0, queue)

    def lease_more(self, leases):
        leases += [task.lease for task in self.client.lease("direct", max=TASKS)]
        return len(leases) == TASKS


if __name__ == "__main__":
    PROGRAM, CPP_WORKER, GO_WORKER = sys.argv[1:4]
    NODE = (sys.argv[4:] + [None])[0]
    unittest.main(argv=sys.argv[:1])
