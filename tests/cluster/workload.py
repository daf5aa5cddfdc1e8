"""The clients of a cluster: producers, workers, and one probe per shard. All use random nodes.

The clients follow docs/concepts/delivery.md: a request without an answer, or with the answer 503,
is
repeated at another node. A request that creates a task has a key, so that it can be repeated, or it
is not repeated. All requests are recorded in the history. Each thread has its own seed, but the
course of a test still depends on the machine.
"""

import datetime
import http.client
import json
import random
import threading
import time

from history import TIMED

# How long clients wait for an answer, in addition to the wait that they ask the node for.
CALL_SECONDS = 3
PROBE_SECONDS = 1
PATIENCE_MS = 10_000  # of clients that wait for a paused node
PROBE_PERIOD_MS = 250
LEASE_MS = 4_000  # the visibility timeout of the workers
BACKOFF = {"initial": "100ms", "max": "500ms"}


def now_ms():
    return time.time() * 1_000


def ms_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1_000


class Clients:
    """The shared state of all clients."""

    def __init__(self, nodes, history, queues, seed):
        self.nodes = nodes
        self.history = history
        self.queues = queues
        self.seed = seed
        self.open = {}  # name by id of acknowledged tasks that have not ended, as far as is known
        self.unavailable = 0  # answers with 503
        self.producing = threading.Event()
        self.working = threading.Event()
        self.threads = []
        self.failures = []

    def start(self, run, *arguments):
        index = len(self.threads)
        client = Client(self, random.Random(f"{self.seed} {index}"), index)

        def body():
            try:
                run(client, *arguments)
            except Exception as error:  # the test checks these failures
                self.failures.append(f"{run.__name__}: {error!r}")
                raise

        thread = threading.Thread(target=body, daemon=True)
        self.threads.append(thread)
        thread.start()


class Client:
    """The client of one thread, with its connections."""

    def __init__(self, clients, rng, index):
        self.clients = clients
        self.history = clients.history
        self.rng = rng
        self.index = index
        self.connections = {}

    def call(self, method, path, body=None, seconds=CALL_SECONDS, node=None):
        """Returns status, answer, and the times before and after. Status 0: no answer came."""
        node = node or self.rng.choice(self.clients.nodes)
        start = now_ms()
        kept = self.connections.pop(node.name, None)
        connection = kept if kept and kept.port == node.port else http.client.HTTPConnection(
            "127.0.0.1", node.port)
        try:
            if connection.sock is None:
                connection.timeout = seconds
                connection.connect()
            connection.sock.settimeout(seconds)
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            status, answer = response.status, json.loads(response.read() or b"{}")
            self.connections[node.name] = connection
        except (OSError, http.client.HTTPException, ValueError):
            connection.close()
            status, answer = 0, {}
        if status == 503:
            self.clients.unavailable += 1
        return status, answer, start, now_ms()

    def rest(self):
        """Pauses before a request is repeated."""
        time.sleep(self.rng.uniform(0.1, 0.5))

    def outcome(self, status, answer):
        """Returns the outcome of one call, or of one element of a batch."""
        problem = answer.get("error") if status == 200 and "error" in answer else None
        if problem:
            status = problem["status"]
        known = {200: "done", 201: "done", 404: "missing", 409: "conflict", 412: "conflict"}
        return known.get(status, "unknown" if status in (0, 503) else "refused")

    # ---- creating and changing tasks ----------------------------------------------------------

    def new_task(self, number):
        delay = self.rng.choice([0, 20, 100, 300, 1_000, 2_000])
        return {"queue": self.rng.choice(self.clients.queues), "delay_ms": delay,
                "payload": f"{self.index}-{number}", "key": f"k{self.index}-{number}",
                "backoff": BACKOFF, "max_attempts": 10_000}

    def made(self, task, first, answer, outcome, times):
        """Records one answer to the creation of a task. `first` is the time of the first
        request."""
        identity = int(answer.get("id", 0)) if outcome == "done" else 0
        self.history.add("put", first, times[1], outcome, identity, task["payload"], task["queue"],
                         task.get("key", ""), due=first + task["delay_ms"])
        if outcome == "refused":
            raise AssertionError(f"a task was refused: {answer}")
        if identity:
            self.clients.open[identity] = task["payload"]
        return identity

    def put(self, task, first=None):
        first = first or now_ms()
        while True:
            status, answer, *times = self.call("POST", "/v1/tasks", task)
            outcome = self.outcome(status, answer)
            identity = self.made(task, first, answer, outcome, times)
            if outcome != "unknown" or "key" not in task or not self.clients.working.is_set():
                return identity
            self.rest()

    def put_batch(self, tasks):
        status, answer, start, end = self.call("POST", "/v1/tasks/batch", tasks)
        results = answer["results"] if status == 200 else [answer] * len(tasks)
        for task, result in zip(tasks, results):
            outcome = self.outcome(status, result)
            self.made(task, start, result, outcome, (start, end))
            if outcome == "unknown" and "key" in task:
                self.put(task, start)

    def change(self, task, kind):
        """Cancels or moves a task that this client created."""
        identity, name, queue = task
        delay = self.rng.choice([50, 500, 1_500])
        first = now_ms()
        while True:
            if kind == "cancel":
                status, answer, start, end = self.call("DELETE", f"/v1/tasks/{identity}")
            else:
                status, answer, start, end = self.call("PATCH", f"/v1/tasks/{identity}",
                                                       {"delay_ms": delay})
            outcome = self.outcome(status, answer)
            due = start + delay
            self.history.add(kind, first if outcome == "missing" else start, end, outcome,
                             identity, name, queue, due=due)
            if outcome == "done" and kind == "cancel":
                self.clients.open.pop(identity, None)
            if outcome != "unknown" or not self.clients.working.is_set():
                return
            self.rest()

    def produce(self, rate):
        number = 0
        while self.clients.working.is_set():
            time.sleep(self.rng.expovariate(rate))
            if not self.clients.producing.is_set():
                continue
            number += 1
            task = self.new_task(number)
            dice = self.rng.random()
            if dice < 0.08:
                batch = []
                for _ in range(self.rng.randint(2, 20)):
                    number += 1
                    batch.append(self.new_task(number))
                    if self.rng.random() < 0.2:
                        del batch[-1]["key"]
                self.put_batch(batch)
                continue
            if dice < 0.15:
                del task["key"]
            identity = self.put(task)
            if identity and dice > 0.85:
                self.change((identity, task["payload"], task["queue"]),
                            "cancel" if dice > 0.92 else "move")

    # ---- leasing and ending tasks -------------------------------------------------------------

    def take(self, queue, most, wait_ms, node=None):
        """Leases tasks. Without an answer, pauses and returns no leases."""
        status, answer, start, end = self.call(
            "POST", f"/v1/queues/{queue}/lease",
            {"max": most, "wait_ms": wait_ms, "visibility_timeout_ms": LEASE_MS},
            CALL_SECONDS + wait_ms / 1_000, node)
        if status != 200:
            if status not in (0, 503):
                raise AssertionError(f"a lease was answered {status}: {answer}")
            self.history.add("take", start, end, "unknown", queue=queue)
            self.rest()
            return []
        held = []
        for task in answer["tasks"]:
            due = ms_of(task["due_at"])
            held.append(self.history.add(
                "handout", start, end, "done", int(task["id"]), task["payload"], queue,
                lease=task["lease"], at=due + task["lateness_ms"], due=due,
                until=ms_of(task["lease_until"])))
        return held

    def work(self, queues):
        while self.clients.working.is_set():
            queue = self.rng.choice(queues)
            held = self.take(queue, self.rng.choice([1, 1, 5]), self.rng.choice([200, 500, 1_000]))
            if held and queue == TIMED:
                self.finish("complete", held, {})
            elif held:
                self.treat(held)

    def haunt(self, node, stands_still):
        """Tries to use a paused node. Before the pause, it gets a lease at the node, or waits there
        for a task that is not yet due. After the pause, it completes the lease at the same node,
        and this is the first request that the node handles."""
        queue = self.rng.choice(self.clients.queues)
        task = {"queue": queue, "key": f"h{self.index}", "payload": f"haunt-{self.index}",
                "delay_ms": self.rng.choice([0, 1_000]), "backoff": BACKOFF}
        self.put(task)
        held = self.take(queue, 1, PATIENCE_MS if task["delay_ms"] else 300, node)
        stands_still.wait()
        if held:
            self.finish("complete", held, {}, node)

    def treat(self, held):
        dice = self.rng.random()
        if dice < 0.02:
            return  # simulates a worker that died
        if dice < 0.20:
            time.sleep(self.rng.uniform(0.2, 1.5))
            self.finish("extend", held, {"by_ms": LEASE_MS})
        if dice < 0.15:
            time.sleep(self.rng.uniform(0, 0.5))
        if dice > 0.95:
            self.finish("fail", held, {"error": "planned", "delay_ms": 200})
        else:
            self.finish("complete", held, {})

    def finish(self, kind, held, more, node=None):
        """Reports leases, and repeats the report for unknown outcomes. Only the first try uses the
        given node."""
        waiting = list(held)
        while waiting:
            status, answer, start, end = self.call(
                "POST", f"/v1/leases/{kind}", {"leases": [one.lease for one in waiting], **more},
                PATIENCE_MS / 1_000 if node else CALL_SECONDS, node)
            node = None
            results = answer["results"] if status == 200 else [answer] * len(waiting)
            again = []
            for one, result in zip(waiting, results):
                outcome = self.outcome(status, result)
                outcome = result.get("status", outcome) if outcome == "done" else outcome
                self.history.add(kind, start, end, outcome, one.task, one.name, one.queue,
                                 lease=one.lease, due=start + more.get("delay_ms", 0),
                                 until=start + more.get("by_ms", 0))
                if kind == "complete" and outcome == "done":
                    self.clients.open.pop(one.task, None)
                if outcome == "unknown":
                    again.append(one)
            waiting = again if self.clients.working.is_set() else []
            if waiting:
                self.rest()

    # ---- looking at shards and tasks ----------------------------------------------------------

    def probe(self, outages, shard, queue):
        """Sends a request to a shard four times per second. It needs the owner and the database."""
        task = {"queue": queue, "key": "probe", "delay": "30d", "payload": "probe"}
        while self.clients.working.is_set():
            node = self.rng.choice([n for n in self.clients.nodes if not n.is_sick])
            status, _, _, end = self.call("POST", "/v1/tasks", task, PROBE_SECONDS, node)
            outages.asked(shard, status in (200, 201), end)
            time.sleep(0.1 if status in (0, 503) else PROBE_PERIOD_MS / 1_000)

    def read(self, identity, name):
        for _ in range(20):
            status, answer, start, end = self.call("GET", f"/v1/tasks/{identity}")
            outcome = self.outcome(status, answer)
            if outcome != "unknown":
                self.history.add("read", start, end, outcome, identity, name)
                if outcome == "missing":
                    self.clients.open.pop(identity, None)
                return
            self.rest()
