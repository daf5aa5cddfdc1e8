"""Tests the Python client and worker with the real server, which some tests kill or stop. The tests
check which events happened and how often, but never when.
"""

import collections
import datetime
import http.server
import os
import threading
import unittest

import detent
from real_server import PROGRAM, RealServer

PATIENCE = 120  # seconds until a hanging test fails
NAMES = ("a", "A-+/;:.$_()z9", "q" * 200, "/", ".", "..", "a//b", "$(x)")
PAYLOADS = (None, True, 0, -1, 2**63, 1.5, "", "é\n\"\\\u2028\0🕰", [], {}, {"": [{"a": None}]},
            b"", b"\0\xff\r\n", "x" * 60_000)


class WithServer(unittest.TestCase):
    def setUp(self):
        self.server = RealServer()
        self.addCleanup(self.server.close)
        self.client = detent.Client(self.server.url, retry_for=60)
        self.addCleanup(self.client.close)

    def until(self, is_so):
        """Waits until the condition is true."""
        pause = threading.Event()
        for _ in range(PATIENCE * 100):
            if is_so():
                return
            pause.wait(0.01)
        self.fail("it did not come to pass")

    def worker(self, handler, **options):
        worker = detent.Worker(self.client, "q", handler, wait=1, **options)
        self.addCleanup(worker.stop, 0)
        return worker


class Verbs(WithServer):
    def test_a_task_goes_through_all_verbs(self):
        client = self.client
        task = client.schedule("q", {"n": 1}, delay="30d", key="k-1", priority=7)
        self.assertEqual((task.queue, task.state, task.was_there), ("q", "scheduled", False))
        again = client.schedule("q", {"n": 1}, delay="30d", key="k-1", priority=7)
        self.assertTrue(again.was_there)
        with self.assertRaises(detent.Conflict):
            client.schedule("q", {"n": 2}, key="k-1")
        found = client.get(detent.TaskKey("q", "k-1"))
        self.assertEqual((found.id, found.payload, found.priority), (task.id, {"n": 1}, 7))
        self.assertEqual(found.due_at, task.due_at)
        self.assertEqual(client.get(task.id), found)
        later = task.due_at + datetime.timedelta(milliseconds=1)
        self.assertEqual(client.move(task.id, due_at=later).due_at, later)
        self.assertEqual([t.id for t in client.list(queue="q", due_before="9000-01-01T00:00:00Z",
                                                    due_after=later).tasks], [task.id])
        self.assertEqual(client.run_now(task.id).state, "ready")
        (leased,) = client.lease("q", visibility_timeout=60, worker="w")
        self.assertEqual((leased.id, leased.attempt, leased.key), (task.id, 1, "k-1"))
        with self.assertRaises(detent.Conflict):
            client.cancel(task.id)
        self.assertEqual(client.extend([leased.lease], 120), ["done"])
        self.assertEqual(client.release([leased.lease], priority=1), ["done"])
        (leased,) = client.lease("q")
        self.assertEqual(client.fail([leased.lease], error="no\nroute", delay=0), ["done"])
        (leased,) = client.lease("q", wait=5)
        self.assertEqual((leased.attempt, client.get(task.id).last_error), (2, "no\nroute"))
        self.assertEqual(client.complete([leased.lease, "1-1"]), ["done", "conflict"])
        with self.assertRaises(detent.NotFound):
            client.get(task.id)

    def test_cancelling_and_moving_many(self):
        client = self.client
        ids = [client.schedule("q", n, delay=60, key=str(n)).id for n in range(3)]
        moved = client.move_many([ids[0], "1"], delay="1h")
        self.assertEqual(moved[0].id, ids[0])
        self.assertIs(type(moved[1]), detent.NotFound)
        keys = [detent.TaskKey("q", name) for name in ("0", "2", "none")]
        results = client.cancel_many(keys)
        self.assertEqual(results[:2], [None, None])
        self.assertIs(type(results[2]), detent.NotFound)
        client.cancel(ids[1])
        self.assertEqual(client.list().tasks, [])
        with self.assertRaises(ValueError):
            client.cancel_many([keys[0], ids[0]])

    def test_ten_thousand_at_once_and_read_back_by_pages(self):
        tasks = [detent.NewTask("q", n, delay="1h", key=f"k{n}") for n in range(10_000)]
        first = self.client.schedule_many(tasks)
        self.assertEqual(len({task.id for task in first}), 10_000)
        again = self.client.schedule_many(tasks)  # like a repeat after a lost answer
        self.assertEqual([task.id for task in again], [task.id for task in first])
        self.assertTrue(all(task.was_there for task in again))
        with self.assertRaises(detent.TooLarge):
            self.client.schedule_many([*tasks, detent.NewTask("q")])
        seen, cursor = [], None
        while True:
            page = self.client.list(queue="q", limit=1000, cursor=cursor)
            seen += [task.payload for task in page.tasks]
            cursor = page.cursor
            if cursor is None:
                break
        self.assertEqual(sorted(seen), list(range(10_000)))

    def test_odd_names_and_payloads_come_back_as_they_went(self):
        for name in NAMES:
            self.client.schedule(name, {"queue": name}, key="é?#%\"🕰")
            self.assertEqual(self.client.queue(name).ready, 1)
            self.client.get(detent.TaskKey(name, "é?#%\"🕰"))
            (leased,) = self.client.lease(name)
            self.assertEqual((leased.queue, leased.payload), (name, {"queue": name}))
        for payload in PAYLOADS:
            self.client.schedule("q", payload)
            (leased,) = self.client.lease("q")
            self.assertEqual(leased.payload, payload)
            self.assertIs(type(leased.payload), type(payload))
        for wrong in ("", "-a", "a b", "é", "q" * 201):
            with self.assertRaises(detent.InvalidArgument) as raised:
                self.client.schedule(wrong)
            self.assertEqual(raised.exception.field, "queue")

    def test_queues_and_schedules(self):
        client = self.client
        limited = client.change_queue("q", max_tasks=1, retention="1d")
        self.assertEqual(limited.settings["max_tasks"], 1)
        client.schedule("q", delay=60)
        with self.assertRaises(detent.ResourceExhausted):
            client.schedule("q")
        queue = client.change_queue("q", max_tasks=None, visibility_timeout=1.5)
        self.assertEqual(queue.settings["visibility_timeout_ms"], 1500)
        self.assertTrue(client.pause("q").settings["paused"])
        self.assertFalse(client.resume("q").settings["paused"])
        self.assertEqual([(one.name, one.scheduled) for one in client.queues()], [("q", 1)])
        self.assertEqual((client.redrive("q"), client.purge("q")), (0, 1))
        schedule = client.put_schedule("s/1", queue="q", payload=[1], cron="0 9 LW * *",
                                       time_zone="Asia/Shanghai", jitter=60)
        self.assertEqual((schedule.name, schedule.state), ("s/1", "active"))
        self.assertEqual(client.next_occurrences("s/1", 3)[0], schedule.next_at)
        self.assertEqual(client.get_schedule("s/1"), schedule)
        self.assertEqual([one.name for one in client.schedules()], ["s/1"])
        self.assertEqual(client.pause_schedule("s/1").state, "paused")
        self.assertEqual(client.resume_schedule("s/1").state, "active")
        self.assertEqual(client.get(client.trigger_schedule("s/1").id).payload, [1])
        client.remove_schedule("s/1")
        with self.assertRaises(detent.NotFound):
            client.get_schedule("s/1")
        self.assertEqual(client.stats()["tasks"]["leased"], 0)
        with self.assertRaises(detent.Conflict):
            client.remove_queue("q")


class Workers(WithServer):
    def test_the_result_of_a_handler_is_reported(self):
        self.client.schedule("q", "good")
        bad = self.client.schedule("q", "bad", max_attempts=1)
        later = self.client.schedule("q", "later")
        overdue = self.client.schedule("q", "overdue", max_attempts=1)
        useless = self.client.schedule("q", "useless")

        def handle(task):
            if task.payload == "overdue":
                raise detent.Retry("late", delay=-5)
            if task.payload == "bad":
                raise ValueError("no \ud800 route")
            if task.payload == "later":
                raise detent.Retry("busy", delay="1h")
            if task.payload == "useless":
                raise detent.Dead("no such order")

        self.worker(handle, concurrency=2).start()
        self.until(lambda: self.client.get(bad.id).state == "dead")
        self.assertEqual(self.client.get(bad.id).last_error, "ValueError: no ? route")
        self.until(lambda: self.client.get(later.id).attempts == 1)
        self.assertEqual(self.client.get(later.id).last_error, "busy")
        self.until(lambda: self.client.get(overdue.id).last_error == "late")
        self.until(lambda: self.client.get(useless.id).state == "dead")
        self.assertEqual(self.client.get(useless.id).last_error, "no such order")
        self.until(lambda: self.client.stats()["counters"]["completed"] == 1)

    def test_a_handler_longer_than_the_visibility_timeout_keeps_its_task(self):
        for n in range(3):
            self.client.schedule("q", n)
        extended = threading.Semaphore(0)
        runs = []

        class Counting(detent.Client):
            def _report(self, verb, *call, **options):
                results = super()._report(verb, *call, **options)
                if verb == "extend":
                    extended.release()
                return results

        def handle(task):
            runs.append(task.payload)
            if task.payload == 0:
                for _ in range(5):  # five extensions, one for each third of the timeout
                    self.assertTrue(extended.acquire(timeout=PATIENCE))

        worker = detent.Worker(Counting(self.server.url), "q", handle, wait=1, prefetch=2,
                               visibility_timeout=3)
        self.addCleanup(worker.stop, 0)
        worker.start()
        self.until(lambda: self.client.stats()["counters"]["completed"] == 3)
        counters = self.client.stats()["counters"]
        self.assertEqual((runs, counters["leases_expired"], counters["conflicts"]),
                         ([0, 1, 2], 0, 0))

    def test_a_stop_releases_unbegun_tasks_and_waits_for_the_others(self):
        self.client.schedule_many([detent.NewTask("q", n) for n in range(10)])
        began, go_on = threading.Semaphore(0), threading.Event()
        done, taken = [], []

        def handle(task):
            began.release()
            self.assertTrue(go_on.wait(PATIENCE))
            done.append(task.id)

        first = self.worker(handle, concurrency=2, prefetch=8)
        first.start()
        for _ in range(2):
            began.acquire()
        self.until(lambda: self.client.queue("q").leased == 10)
        stopping = threading.Thread(target=first.stop)
        stopping.start()
        self.until(lambda: self.client.queue("q").ready == 8)
        self.worker(lambda task: taken.append((task.id, task.attempt)), concurrency=4).start()
        self.until(lambda: len(taken) == 8)
        go_on.set()
        stopping.join()
        self.until(lambda: self.client.stats()["counters"]["completed"] == 10)
        self.assertEqual(len(set(done) | {task for task, _ in taken}), 10)
        self.assertEqual({attempt for _, attempt in taken}, {1})

    def test_a_handler_that_outlives_the_grace_is_abandoned_and_its_task_released(self):
        self.client.schedule("q")
        began, abandoned = threading.Event(), threading.Event()

        def handle(task):
            began.set()
            if task.abandoned.wait(PATIENCE):
                abandoned.set()

        worker = self.worker(handle)
        worker.start()
        began.wait(PATIENCE)
        worker.stop(grace=0)
        self.assertTrue(abandoned.wait(PATIENCE))
        (leased,) = self.client.lease("q", wait=5)
        self.assertEqual(leased.attempt, 1)

    def test_an_idle_worker_stops_immediately_and_holds_no_task(self):
        worker = detent.Worker(self.client, "q", lambda task: None, wait=60)
        worker.start()
        self.until(lambda: self.client.stats()["waiting_workers"] == 1)
        worker.stop()
        self.until(lambda: self.client.stats()["waiting_workers"] == 0)
        self.client.schedule("q")
        self.assertEqual(len(self.client.lease("q")), 1)

    def test_a_server_killed_twice_loses_nothing_and_repeats_only_open_leases(self):
        count, concurrency, prefetch, kills = 600, 4, 8, 2
        runs = collections.Counter()
        lock, reached = threading.Lock(), [threading.Event() for _ in range(kills)]

        def handle(task):
            with lock:
                runs[task.payload] += 1
                for kill in range(kills):
                    if len(runs) >= (kill + 1) * count // 3:
                        reached[kill].set()

        self.client.schedule_many([detent.NewTask("q", n, key=str(n)) for n in range(count)])
        worker = self.worker(handle, concurrency=concurrency, prefetch=prefetch,
                             visibility_timeout=60, on_error=lambda error: None)
        worker.start()
        for event in reached:
            self.assertTrue(event.wait(PATIENCE))
            self.server.kill()
            self.server.start()
        self.until(lambda: sum(self.client.stats()["tasks"].values()) == 0)
        worker.stop()
        self.assertEqual(len(runs), count)
        self.assertLessEqual(sum(runs.values()) - count, kills * (concurrency + prefetch))

    def test_scheduling_continues_after_a_kill(self):
        def keep_killing():
            for _ in range(3):
                self.server.kill()
                self.server.start()
            killed.set()

        killed, made = threading.Event(), 0
        killer = threading.Thread(target=keep_killing)
        killer.start()
        while not killed.is_set():
            self.client.schedule("q", made, delay="1h", key=str(made))
            made += 1
        killer.join()
        self.assertEqual(self.client.queue("q").scheduled, made)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.arrived.append((dict(self.headers), body))
        self.send_response(204)
        self.end_headers()
        self.server.has_arrived.set()

    def log_message(self, *_):
        pass


class Webhooks(unittest.TestCase):
    def test_a_delivery_of_the_server_is_genuine(self):
        with RealServer("--webhook-allow", "127.0.0.0/8") as server, \
                http.server.HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
            receiver.arrived, receiver.has_arrived = [], threading.Event()
            threading.Thread(target=receiver.serve_forever, args=(0.01,), daemon=True).start()
            url = f"http://127.0.0.1:{receiver.server_address[1]}/"
            client = detent.Client(server.url)
            task = client.schedule("q", {"é": "🕰"}, webhook=url)
            self.assertTrue(receiver.has_arrived.wait(PATIENCE))
            receiver.shutdown()
            client.close()
            with open(os.path.join(server.data, "webhook.key")) as file:
                key = file.read().strip()
            headers, body = receiver.arrived[0]
            self.assertEqual(detent.verify_webhook(key, headers, body), f"task_{task.id}")
            with self.assertRaises(detent.InvalidSignature):
                detent.verify_webhook(key, headers, body + b" ")


if __name__ == "__main__":
    assert os.access(PROGRAM, os.X_OK), PROGRAM
    unittest.main()
