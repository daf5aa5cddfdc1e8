#!/usr/bin/env python3
"""check_test.py PROGRAM: `detent check --store` on the database of a cluster.

While nodes run, the command refuses and names the owner of a shard. After all nodes were stopped,
or were killed and their leases have expired, it reads every shard. It changes no data, and it names
the shard of a damaged record.
"""

import json
import subprocess
import sys
import unittest
import urllib.request

from stand import Stand
from child_programs import wait_until  # stand knows where it is

SHARDS = 4
TASKS = 60
QUEUES = 8
TABLES = ("shard", "lease", "task", "queue", "schedule", "task_key", "due_count", "quarantine")
PATIENCE = 60  # seconds


class Check(unittest.TestCase):
    def setUp(self):
        self.stand = Stand(PROGRAM, nodes=2, shards=SHARDS)
        self.addCleanup(self.stand.stop)
        self.stand.start()

    def ask(self, method, path, body):
        request = urllib.request.Request(self.stand.url(self.stand.nodes["a"]) + path,
                                         method=method, data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def check(self, *flags):
        postgres = self.stand.postgres
        url = f"postgresql://postgres@127.0.0.1:{postgres.port}/cluster"
        ended = subprocess.run([PROGRAM, "check", "--store", url, *flags], capture_output=True,
                               text=True, check=False)
        return ended.returncode, ended.stdout, ended.stderr

    def sql(self, text):
        postgres = self.stand.postgres
        return subprocess.run(
            [postgres.programs / "psql", "-qAt", "-h", "127.0.0.1", "-p", str(postgres.port), "-U",
             "postgres", "-d", "cluster", "-c", text], check=True, capture_output=True,
            text=True).stdout

    def contents(self):
        return [self.sql(f"select t::text from detent.{table} as t order by 1") for table in TABLES]

    def test_all_shards_are_checked_when_no_node_runs(self):
        self.ask("PATCH", "/v1/queues/hot", {"partitions": SHARDS})
        self.ask("PUT", "/v1/schedules/s", {"queue": "q0", "every": "1h"})
        for number in range(TASKS):
            queue = "hot" if number % 3 == 0 else f"q{number % QUEUES}"
            self.ask("POST", "/v1/tasks", {"queue": queue, "key": f"k{number}", "delay": "1h"})
        self.ask("POST", "/v1/tasks", {"queue": "q1"})
        self.assertEqual(len(self.ask("POST", "/v1/queues/q1/lease", {})["tasks"]), 1)

        code, _, told = self.check()
        self.assertEqual(code, 1)
        self.assertRegex(told, r"shard \d is in use by [ab]; its lease expires in \d+ ms")
        self.assertIn("Stop all servers", told)

        a, b = self.stand.nodes["a"], self.stand.nodes["b"]
        a.process.terminate()
        self.assertEqual(a.wait_for_exit(), 0)
        b.stop()  # SIGKILL: its shards are in use until their leases have expired
        wait_until(lambda: self.check()[0] == 0, PATIENCE, "all leases have run out")
        before = self.contents()
        code, said, _ = self.check("--json")
        report = json.loads(said)
        self.assertEqual((code, report["shards"], report["finding_count"]), (0, SHARDS, 0))
        self.assertEqual(sum(report["records"].values()), TASKS + 1)
        self.assertEqual(report["schedules"], 1)
        self.assertIn(f"\nshards      {SHARDS}\n", self.check()[1])
        self.assertEqual(self.contents(), before)

        shard, task = self.sql("select shard, id from detent.task order by shard desc, id limit 1"
                               ).strip().split("|")
        self.sql(f"update detent.task set record = set_byte(record, 20, 255 - get_byte(record, 20))"
                 f" where shard = {shard} and id = {task}")
        code, said, _ = self.check()
        self.assertEqual(code, 1)
        self.assertIn(f"wrong: shard {shard}: task {task}", said)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
