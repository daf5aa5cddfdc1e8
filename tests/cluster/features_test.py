#!/usr/bin/env python3
"""features_test.py PROGRAM: the features of a single server on a cluster of two nodes.

docs/operating/cluster.md lists these features in a table. Webhooks and alerts go to a receiver of
the test. Sinks are tested with a redis-server, if it is installed. A task of each feature is put
through both nodes, so at least one node must pass it on.
"""

import collections
import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

from stand import Stand
from child_programs import die_with_parent, free_port, wait_until  # stand knows where it is

SHARDS = 4
QUEUES = [f"q{number}" for number in range(8)]  # on all shards
PATIENCE = 60  # seconds
KEY = "whsec_" + "A" * 32


class Receiver:
    """Answers every POST with 204. Keeps the requests, by path."""

    def __init__(self):
        self.received = collections.defaultdict(list)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler):
                body = handler.rfile.read(int(handler.headers["content-length"]))
                self.received[handler.path].append((handler.headers, json.loads(body)))
                handler.send_response(204)
                handler.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def bodies(self, path):
        return [body for _, body in list(self.received[path])]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Features(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.receiver = Receiver()
        cls.addClassCleanup(cls.receiver.stop)
        cls.folder = tempfile.TemporaryDirectory(prefix="detent-features-")
        cls.addClassCleanup(cls.folder.cleanup)
        keys = f"{cls.folder.name}/keys"
        with open(keys, "w", encoding="utf-8") as file:
            file.write(KEY + "\n")
        cls.flags = ["--webhook-allow", "127.0.0.0/8", "--webhook-keys", keys, "--alert-webhook",
                     cls.receiver.url + "/alerts", "--alert-dead", "0"]
        cls.start_redis()
        cls.stand = Stand(PROGRAM, nodes=2, shards=SHARDS, flags=cls.flags)
        cls.addClassCleanup(cls.stand.stop)
        cls.stand.start()

    @classmethod
    def start_redis(cls):
        cls.redis_port = free_port() if shutil.which("redis-server") else None
        if cls.redis_port is None:
            return
        redis = subprocess.Popen(
            ["redis-server", "--port", str(cls.redis_port), "--bind", "127.0.0.1", "--save", ""],
            cwd=cls.folder.name, stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
        cls.addClassCleanup(redis.wait)
        cls.addClassCleanup(redis.kill)
        wait_until(lambda: cls.redis("PING") == "PONG", PATIENCE, "redis-server listens")
        sinks = f"{cls.folder.name}/sinks"
        with open(sinks, "w", encoding="utf-8") as file:
            file.write(f"due redis://127.0.0.1:{cls.redis_port}/due\n")
        cls.flags += ["--sinks", sinks]

    @classmethod
    def redis(cls, *command):
        return subprocess.run(["redis-cli", "-p", str(cls.redis_port), *command],
                              capture_output=True, text=True, check=False).stdout.strip()

    def ask(self, method, path, body=None, node="a"):
        request = urllib.request.Request(
            self.stand.url(self.stand.nodes[node]) + path, method=method,
            data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def detent(self, *arguments, node="a"):
        ended = subprocess.run(
            [PROGRAM, *arguments, "--server", self.stand.url(self.stand.nodes[node])],
            capture_output=True, text=True, check=False, timeout=PATIENCE)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def test_webhooks_of_all_shards_are_called_and_signed(self):
        for number, queue in enumerate(QUEUES):
            self.ask("POST", "/v1/tasks", {"queue": queue + "-hook", "payload": number,
                                           "webhook": self.receiver.url + "/hook"},
                     node="ab"[number % 2])
        wait_until(lambda: sorted(self.receiver.bodies("/hook")) == list(range(len(QUEUES))),
                   PATIENCE, "each webhook is called once")
        for headers, _ in self.receiver.received["/hook"]:
            self.assertTrue(headers["webhook-signature"].startswith("v1,"))

    def test_sinks_get_the_tasks_of_all_shards(self):
        if self.redis_port is None:
            self.skipTest("redis-server is not installed: tools/setup test")
        for number, queue in enumerate(QUEUES):
            self.ask("PATCH", f"/v1/queues/{queue}-sink", {"sink": "due"})
            self.ask("POST", "/v1/tasks", {"queue": queue + "-sink", "payload": number},
                     node="ab"[number % 2])
        wait_until(lambda: self.redis("XLEN", "due") == str(len(QUEUES)), PATIENCE,
                   "the stream has each task once")

    def test_schedules_of_all_shards_make_tasks(self):
        for number, queue in enumerate(QUEUES):
            self.ask("PUT", f"/v1/schedules/s{number}", {"queue": queue + "-cron", "every": "1s"},
                     node="ab"[number % 2])
        self.assertEqual(len(self.ask("GET", "/v1/schedules", node="b")["schedules"]), len(QUEUES))
        for number, queue in enumerate(QUEUES):
            tasks = self.ask("POST", f"/v1/queues/{queue}-cron/lease", {"wait": "20s"})["tasks"]
            self.assertEqual(len(tasks), 1)
            self.ask("DELETE", f"/v1/schedules/s{number}", node="b")

    def test_top_shows_the_queues_of_all_shards(self):
        for queue in QUEUES:
            self.ask("POST", "/v1/tasks", {"queue": queue + "-top"})
        for node in "ab":
            shown = self.detent("top", "--once", node=node)
            for queue in QUEUES:
                self.assertIn(queue + "-top", shown)

    def test_a_dump_has_the_tasks_of_all_shards_and_can_be_restored(self):
        tasks = {}
        for queue in QUEUES:
            task = self.ask("POST", "/v1/tasks", {"queue": queue + "-dump", "delay": "1h"})
            tasks[queue] = task["id"]
        file = f"{self.folder.name}/dump"
        self.detent("dump", file, node="b")
        for task in tasks.values():
            self.ask("DELETE", f"/v1/tasks/{task}", node="b")
        self.detent("restore", file, node="a")
        for queue, task in tasks.items():
            self.assertEqual(self.ask("GET", f"/v1/tasks/{task}", node="b")["queue"],
                             queue + "-dump")

    def test_one_node_sends_an_alert_about_the_figures_of_all_nodes(self):
        self.assertEqual(self.receiver.bodies("/alerts"), [])
        for queue in QUEUES:
            self.ask("POST", "/v1/tasks", {"queue": queue + "-dies", "max_attempts": 1})
            lease = self.ask("POST", f"/v1/queues/{queue}-dies/lease",
                             {"wait": "10s"})["tasks"][0]["lease"]
            self.ask("POST", "/v1/leases/fail", {"leases": [lease]})
        wait_until(lambda: self.receiver.received["/alerts"], PATIENCE, "an alert arrives")
        headers, alert = self.receiver.received["/alerts"][0]
        self.assertEqual((alert["type"], alert["data"]["alert"]), ("alert.firing", "dead"))
        self.assertTrue(headers["webhook-signature"].startswith("v1,"))
        for queue in QUEUES:
            self.ask("POST", f"/v1/queues/{queue}-dies/purge", {})
        wait_until(lambda: len(self.receiver.received["/alerts"]) > 1, PATIENCE,
                   "the end of the alert arrives")
        time.sleep(3)  # for an alert of the other node, or a second one
        self.assertEqual([body["type"] for body in self.receiver.bodies("/alerts")],
                         ["alert.firing", "alert.recovered"])

    def test_a_node_refuses_an_external_scheduler(self):
        ended = subprocess.run(
            [PROGRAM, "serve", "--node", "x", "--store",
             f"postgresql://postgres@127.0.0.1:{self.stand.postgres.port}/cluster", "--http",
             "127.0.0.1:0", "--external", "redis://127.0.0.1:1/0"], capture_output=True, text=True,
            check=False, timeout=PATIENCE)
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn("external", ended.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
