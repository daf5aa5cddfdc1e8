#!/usr/bin/env python3
"""A drill: backs up a server under load, kills it, and restores the backups.

The server has thousands of tasks, with keys, leases, dead tasks and schedules. A producer adds
tasks during each backup. The test compares the restored tasks with the tasks that were acknowledged
before the backup began, and after it had ended.

The argument is the program.
"""

import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from child_programs import die_with_parent  # noqa: E402

PROGRAM = sys.argv[1]
PATIENCE = 120
TASKS = 3_000
ENVIRONMENT = {name: value for name, value in os.environ.items() if "DETENT" not in name}


class Failed(Exception):
    """A command failed; the text is its standard error."""


def run(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], env=ENVIRONMENT, text=True, check=False,
                          capture_output=True, timeout=PATIENCE)
    if done.returncode != 0:
        raise Failed(f"{done.returncode}: {done.stderr}")
    return done.stdout


class Server:
    """A server on a free port. `log` is what it has written so far when it is ready."""

    def __init__(self, data, *options):
        self.log_file = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", str(data), "--http", "127.0.0.1:0", "--beanstalk", "off",
             "--log-format", "json", *options],
            env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=self.log_file, text=True,
            preexec_fn=die_with_parent)
        first = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", first)
        assert found, first + self.log()
        self.url = found[0]
        self.port = int(found[1])

    def log(self):
        self.log_file.seek(0)
        return self.log_file.read()

    def events(self):
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]

    def call(self, method, target, body=None, connection=None):
        owned = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        owned.request(method, target, None if body is None else json.dumps(body))
        answer = owned.getresponse()
        text = answer.read().decode()
        if connection is None:
            owned.close()
        assert answer.status < 300, f"{method} {target}: {answer.status} {text}"
        return json.loads(text) if text.startswith(("{", "[")) else text

    def put(self, tasks, connection=None):
        """Puts tasks and returns their ids."""
        results = self.call("POST", "/v1/tasks/batch", tasks, connection)["results"]
        return [result["id"] for result in results]

    def dump(self):
        """All tasks by id."""
        tasks = {}
        for line in run("dump", "-", "--server", self.url).splitlines():
            task = json.loads(line).get("task")
            if task:
                tasks[task["id"]] = task
        return tasks

    def metric(self, name):
        found = re.search(rf"^{name} (\S+)$", self.call("GET", "/metrics"), re.MULTILINE)
        return float(found[1]) if found else None

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.log_file.close()


class Producer:
    """Puts tasks until it is stopped. `ids` are the acknowledged tasks."""

    def __init__(self, server):
        self.ids = []
        self.has_put = threading.Event()
        self.stops = threading.Event()
        self.thread = threading.Thread(target=self.produce, args=(server,))
        self.thread.start()

    def produce(self, server):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        while not self.stops.is_set():
            self.ids += server.put([{"queue": "load", "delay": "30d", "payload": "x" * 200}] * 20,
                                   connection)
            self.has_put.set()
        connection.close()

    def await_first(self):
        """Waits for acknowledged tasks, and returns their ids."""
        assert self.has_put.wait(PATIENCE)
        return list(self.ids)

    def stop(self):
        self.stops.set()
        self.thread.join()
        return self.ids


def bytes_in(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


class Drill(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.data = self.folder / "data"
        self.backups = self.folder / "backups"
        self.server = Server(self.data)
        self.addCleanup(lambda: self.server.process.poll() is None and self.server.kill())

    def back_up(self, *options):
        return json.loads(run("backup", self.backups, "--json", "--server", self.server.url,
                              *options))

    def restart(self, data, *options):
        self.server = Server(data, *options)

    def fill(self):
        """Tasks of all kinds. Returns the ids of the tasks that stay, and of the leased ones."""
        server = self.server
        ids = []
        for first in range(0, TASKS, 500):
            ids += server.put([
                {"queue": "mail", "key": f"k{n}", "payload": {"n": n}, "delay": "10d"}
                for n in range(first, first + 500)])
        dead = server.put([{"queue": "dead", "payload": i, "max_attempts": 1} for i in range(50)])
        leases = server.call("POST", "/v1/queues/dead/lease", {"max": 50})["tasks"]
        server.call("POST", "/v1/leases/fail", {"leases": [one["lease"] for one in leases]})
        ready = server.put([{"queue": "jobs", "payload": i} for i in range(100)])
        leased = server.call("POST", "/v1/queues/jobs/lease",
                             {"max": 60, "visibility_timeout": "1h"})["tasks"]
        ended = [one["lease"] for one in leased[:10]]
        server.call("POST", "/v1/leases/complete", {"leases": ended})
        server.call("POST", "/v1/tasks/cancel", {"ids": ids[:10]})
        server.call("PUT", "/v1/schedules/report", {"cron": "0 9 * * *", "queue": "reports"})
        done = {one["id"] for one in leased[:10]} | set(ids[:10])
        return [one for one in ids + dead + ready if one not in done], leased[10:], done

    def test_a_killed_server_comes_back_from_a_backup(self):
        kept, leased, done = self.fill()
        before = self.server.dump()
        self.assertLessEqual(set(kept), set(before))
        producer = Producer(self.server)
        acknowledged = producer.await_first()
        first = self.back_up()
        acknowledged_before_second = list(producer.ids)
        second = self.back_up()
        loaded = producer.stop()
        self.assertGreater(first["bytes"], 0)
        # Workers and producers go on after the backup.
        late = self.server.put([{"queue": "jobs", "payload": "late"}] * 10)
        self.server.call("POST", "/v1/leases/complete",
                         {"leases": [one["lease"] for one in leased[:20]]})
        self.server.kill()

        restored_data = self.folder / "restored"
        told = run("restore-backup", self.backups, "--data", restored_data)
        self.assertIn(f"restored backup {second['number']} of {second['made_at']}", told)
        self.assertIn("all is well", run("check", "--data", restored_data))
        self.restart(restored_data)
        warnings = [event for event in self.server.events() if "restored" in event["message"]]
        self.assertEqual([event["made_at"] for event in warnings], [second["made_at"]])
        after = self.server.dump()

        # Every task that was acknowledged before the backup is as it was. Tasks that ended before
        # the backup stay ended. Tasks that ended after it are there again. Later tasks are missing.
        self.assertEqual({one: after.get(one) for one in kept}, {one: before[one] for one in kept})
        self.assertLessEqual(set(acknowledged_before_second), set(after))
        self.assertFalse(done & set(after))
        self.assertFalse(set(late) & set(after))
        self.assertLessEqual(set(after), set(kept) | set(loaded))
        self.assertEqual(self.server.call("GET", "/v1/schedules/report")["cron"], "0 9 * * *")
        self.assertEqual(self.server.call("GET", "/v1/queues/dead")["dead"], 50)

        # Its leases are void, and its tasks are handed out again with other tokens.
        old = [one["lease"] for one in leased]
        results = self.server.call("POST", "/v1/leases/complete", {"leases": old})["results"]
        self.assertTrue(all(one.get("status") != "done" for one in results), results[0])
        again = self.server.call("POST", "/v1/queues/jobs/lease", {"max": 1_000})["tasks"]
        self.assertLessEqual({one["id"] for one in leased}, {one["id"] for one in again})
        self.assertFalse(set(old) & {one["lease"] for one in again})
        # No new task gets an id that the killed server has given out.
        new = self.server.put([{"queue": "jobs"}])[0]
        self.assertGreater(int(new), max(map(int, loaded + late + kept)))
        self.server.kill()

        # The first backup is complete by itself. The second start does not tell of the restore.
        other = self.folder / "first"
        run("restore-backup", self.backups, "--data", other, "--backup", first["number"])
        self.restart(other)
        found = set(self.server.dump())
        self.assertLessEqual(set(kept) | set(acknowledged), found)
        self.server.kill()
        self.restart(other)
        self.assertNotIn("restored from a backup", self.server.log())

    def test_backups_are_incremental_and_old_ones_are_removed(self):
        self.server.put([{"queue": "mail", "delay": "10d",
                          "payload": os.urandom(500).hex()} for _ in range(TASKS)])
        self.assertIsNone(self.server.metric("detent_backup_last_bytes"))
        first = self.back_up()
        size = bytes_in(self.backups)
        self.assertEqual(first["copied_bytes"], size)
        self.server.put([{"queue": "mail", "delay": "10d"}] * 10)
        second = self.back_up()
        self.assertLess(second["copied_bytes"], first["copied_bytes"] / 10)
        self.assertEqual(bytes_in(self.backups), size + second["copied_bytes"])
        self.assertEqual(self.server.metric("detent_backup_last_bytes"), second["bytes"])
        made_at = self.server.metric("detent_backup_last_success_timestamp_seconds")
        third = self.back_up("--keep", "2")
        self.assertEqual(third["removed"], [first["number"]])
        self.assertGreater(self.server.metric("detent_backup_last_success_timestamp_seconds"),
                           made_at)
        listed = json.loads(run("backup", self.backups, "--list", "--json"))["backups"]
        self.assertEqual([one["number"] for one in listed], [2, 3])
        self.assertEqual([one["damage"] for one in listed], [None, None])
        self.assertEqual(self.back_up("--keep", "1", "--keep-days", "1")["removed"], [])
        self.assertEqual([name for name in os.listdir(self.data) if "checkpoint" in name], [])
        audited = [event["act"] for event in self.server.events() if event["message"] == "audit"]
        self.assertEqual(audited, ["POST /v1/backup"] * 4)

    def test_a_damaged_file_is_named_and_nothing_is_restored(self):
        self.server.put([{"queue": "mail", "delay": "10d", "payload": "x" * 100}] * 1_000)
        self.back_up()
        tables = (self.backups / "shared_checksum").iterdir()
        table = max(tables, key=lambda file: file.stat().st_size)
        content = bytearray(table.read_bytes())
        content[len(content) // 2] ^= 1
        table.write_bytes(content)
        with self.assertRaisesRegex(Failed, f"backup 1 is damaged.*{table.name}"):
            run("restore-backup", self.backups, "--data", self.folder / "restored")
        self.assertFalse((self.folder / "restored").exists())
        with self.assertRaises(Failed):
            run("backup", self.backups, "--check")

    def test_a_killed_command_leaves_earlier_backups_and_a_server_that_works(self):
        self.server.put([{"queue": "mail", "delay": "10d",
                          "payload": os.urandom(2_000).hex()} for _ in range(TASKS)])
        self.back_up()
        self.server.put([{"queue": "mail", "delay": "10d",
                          "payload": os.urandom(2_000).hex()} for _ in range(TASKS)])
        command = subprocess.Popen([PROGRAM, "backup", self.backups, "--server", self.server.url],
                                   env=ENVIRONMENT, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        # The checkpoint is the sign that the backup has begun.
        while command.poll() is None and not any(self.data.glob("checkpoint-*")):
            pass
        command.kill()
        command.wait()
        self.assertEqual(json.loads(run("backup", self.backups, "--list", "--json"))["backups"][0]
                         ["damage"], None)
        # Without this, the server may refuse the next backup for a minute.
        self.server.call("POST", "/v1/backup/end")
        made = self.back_up()
        self.assertEqual([*self.data.glob("checkpoint-*")], [])
        run("restore-backup", self.backups, "--data", self.folder / "restored")
        self.server.kill()
        self.restart(self.folder / "restored")
        self.assertEqual(self.server.call("GET", "/v1/queues/mail")["scheduled"], 2 * TASKS)
        self.assertGreaterEqual(made["number"], 2)

    def test_a_stopped_server_is_backed_up_with_its_key_and_a_used_folder_is_refused(self):
        self.server.put([{"queue": "mail", "delay": "10d"}] * 10)
        with self.assertRaisesRegex(Failed, "in use by another process, pid .*; to back up a"):
            run("backup", self.backups, "--data", self.data)
        with self.assertRaisesRegex(Failed, "is in the data folder"):
            run("backup", self.data / "backups", "--server", self.server.url)
        with self.assertRaisesRegex(Failed, "is in the backup folder"):
            run("backup", self.folder, "--server", self.server.url)
        self.server.kill()
        told = run("backup", self.backups, "--data", self.data)
        self.assertRegex(told, "backup 1 in .* were copied")
        with self.assertRaisesRegex(Failed, "is not empty"):
            run("restore-backup", self.backups, "--data", self.data)
        run("restore-backup", self.backups, "--data", self.folder / "restored")
        self.assertEqual((self.folder / "restored/webhook.key").read_bytes(),
                         (self.data / "webhook.key").read_bytes())
        for file in (self.folder / "restored").iterdir():
            self.assertEqual(file.stat().st_mode & 0o077, 0, file)
        for file in self.backups.rglob("*"):
            self.assertEqual(file.stat().st_mode & 0o077, 0, file)
        self.restart(self.folder / "restored")
        self.assertEqual(self.server.call("GET", "/v1/queues/mail")["scheduled"], 10)

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_root_leaves_a_stopped_server_its_folder_and_follows_no_link_of_it(self):
        self.server.put([{"queue": "mail", "delay": "10d"}] * 10)
        self.server.kill()
        nobody = 65534
        self.folder.chmod(0o755)
        for file in [self.data, *self.data.rglob("*")]:
            os.chown(file, nobody, nobody)
        made = json.loads(run("backup", self.backups, "--data", self.data, "--json"))
        self.assertEqual({file.stat().st_uid for file in self.data.rglob("*")}, {nobody})
        self.assertTrue((self.data / "last-backup").exists())
        self.assertEqual({file.stat().st_uid for file in self.backups.rglob("*")}, {0})
        secret = self.folder / "secret"
        secret.write_text("secret")
        (self.data / "webhook.key").unlink()
        (self.data / "webhook.key").symlink_to(secret)
        with self.assertRaisesRegex(Failed, "webhook.key: it must be a file, not a link"):
            run("backup", self.backups, "--data", self.data)
        self.assertEqual([*self.data.glob("checkpoint-*")], [])
        (self.data / "webhook.key").unlink()
        (self.data / "last-backup.part").mkdir()
        again = subprocess.run([PROGRAM, "backup", self.backups, "--data", self.data],
                               env=ENVIRONMENT, text=True, check=True, capture_output=True)
        self.assertIn(f"backup {made['number'] + 1} in ", again.stdout)
        self.assertRegex(again.stderr, "the backup is complete, but this failed: .*last-backup")

    def test_only_an_administrator_can_begin_a_backup(self):
        self.server.kill()
        made = subprocess.run([PROGRAM, "token", "new", "--name", "shop", "--scope", "produce"],
                              env=ENVIRONMENT, text=True, check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT).stdout
        tokens = self.folder / "tokens"
        tokens.write_text(made)
        token = re.search(r"dt_[\w-]+", made)[0]
        self.restart(self.data, "--auth", str(tokens))
        with self.assertRaisesRegex(Failed, "admin"):
            run("backup", self.backups, "--server", self.server.url, "--token", token)
        self.assertFalse(self.backups.exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
