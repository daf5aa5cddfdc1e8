"""Tests the Python client with a scripted server: which calls are repeated, which error is raised,
and which bytes are sent. No test waits, because the client uses a clock of the test.
"""

import base64
import datetime
import hashlib
import hmac
import json
import select
import threading
import unittest

import detent
from detent.values import Backoff, to_milliseconds
from scripted_server import ScriptedServer

TASK = {"id": "256", "queue": "q", "state": "scheduled", "due_at": "2026-01-02T03:04:05.678Z"}
DONE = (200, {}, TASK)
BUSY = (503, {}, {"type": "urn:detent:error:unavailable", "status": 503, "detail": "busy"})


def problem(status, kind, **more):
    body = {"type": f"urn:detent:error:{kind}", "status": status, "detail": "no", **more}
    return status, {}, body


def client_of(server, retry_for=100):
    """Returns a client and the list of its pauses. Its clock advances without real waits."""
    client = detent.Client(server.url, retry_for=retry_for)
    pauses = []
    client._http._now = lambda: float(sum(pauses))
    client._http._wait = pauses.append
    return client, pauses


class Repeats(unittest.TestCase):
    def test_a_503_is_repeated_after_the_seconds_it_names(self):
        with ScriptedServer((503, {"Retry-After": "7"}, {}), BUSY, DONE) as server:
            client, pauses = client_of(server)
            self.assertEqual(client.schedule("q", key="k").id, "256")
            self.assertEqual(pauses[0], 7)
            self.assertLessEqual(pauses[1], 0.2)
            self.assertEqual(server.requests[0][3], server.requests[2][3])

    def test_the_answer_of_a_proxy_without_a_server_counts_as_503(self):
        for status in (408, 502, 504):
            with ScriptedServer((status, {"Retry-After": "7"}, b"<html>"), DONE) as server:
                client, pauses = client_of(server)
                self.assertEqual(client.schedule("q", key="k").id, "256")
                self.assertEqual(pauses, [7])

    def test_a_retry_after_of_zero_does_not_shorten_the_pauses(self):
        none = (503, {"Retry-After": "0"}, {})
        with ScriptedServer(none, none, none, DONE) as server:
            client, pauses = client_of(server)
            client.move("256", delay="1h")
            self.assertGreaterEqual(pauses[0], 0.05)
            self.assertGreaterEqual(pauses[2], 0.2)

    def test_a_lost_call_is_repeated_if_it_may_run_twice(self):
        with ScriptedServer("drop", DONE) as server:
            client, pauses = client_of(server)
            client.move("256", delay="1h")
            self.assertEqual(len(server.requests), 2)
            self.assertEqual(len(pauses), 1)

    def test_a_call_that_must_not_run_twice_is_sent_once(self):
        calls = (
            lambda client: client.schedule("q"),
            lambda client: client.schedule_many(
                [detent.NewTask("q", key="k"), detent.NewTask("q")]),
            lambda client: client.trigger_schedule("s"),
            lambda client: client.purge("q"),
            lambda client: client.redrive("q"),
        )
        for call in calls:
            for answer in (BUSY, "drop"):
                with ScriptedServer(answer) as server:
                    client, pauses = client_of(server)
                    with self.assertRaises(detent.Unavailable) as raised:
                        call(client)
                    self.assertEqual((len(server.requests), pauses), (1, []))
                    self.assertFalse(raised.exception.is_repeated)

    def test_any_call_is_repeated_while_no_server_listens(self):
        with ScriptedServer() as gone:
            pass
        client, pauses = client_of(gone, retry_for=20)
        with self.assertRaises(detent.Unavailable) as raised:
            client.schedule("q")
        self.assertFalse(raised.exception.is_repeated, "it was never sent")
        self.assertGreater(len(pauses), 4)
        self.assertLessEqual(sum(pauses), 20)

    def test_no_pause_ends_after_the_time_limit(self):
        with ScriptedServer((503, {"Retry-After": "101"}, {})) as server:
            client, pauses = client_of(server)
            with self.assertRaises(detent.Unavailable):
                client.get("1")
            self.assertEqual(pauses, [])

    def test_the_error_of_a_repeated_call_has_is_repeated(self):
        with ScriptedServer("drop", problem(404, "not_found")) as server:
            client, _ = client_of(server)
            with self.assertRaises(detent.NotFound) as raised:
                client.cancel("256")
            self.assertTrue(raised.exception.is_repeated)

    def test_a_connection_is_kept_and_replaced_when_the_server_has_closed_it(self):
        closing, hanging_up = (200, {"Connection": "close"}, TASK), (200, {"x-hang-up": ""}, TASK)
        with ScriptedServer(DONE, DONE, closing, hanging_up, DONE) as server:
            client, pauses = client_of(server)
            for _ in range(4):
                client.schedule("q")  # this call cannot be repeated
            select.select([client._http._idle[0].sock], [], [])  # until the server has closed it
            client.schedule("q")
            self.assertEqual((server.connections, pauses), (3, []))


class Errors(unittest.TestCase):
    def test_each_error_has_its_class_and_the_problem(self):
        kinds = ((400, "invalid_argument", detent.InvalidArgument),
                 (403, "forbidden", detent.Forbidden), (404, "not_found", detent.NotFound),
                 (409, "conflict", detent.Conflict), (413, "too_large", detent.TooLarge),
                 (429, "resource_exhausted", detent.ResourceExhausted),
                 (500, "data_loss", detent.DataLoss), (500, "internal", detent.Internal))
        for status, kind, expected in kinds:
            with ScriptedServer(problem(status, kind, field="queue")) as server:
                client, _ = client_of(server)
                with self.assertRaises(detent.DetentError) as raised:
                    client.get("1")
                error = raised.exception
                self.assertIs(type(error), expected)
                self.assertEqual((error.status, error.field, error.detail), (status, "queue", "no"))
                self.assertEqual(error.problem["type"], f"urn:detent:error:{kind}")

    def test_the_status_decides_if_the_answer_has_no_problem(self):
        for status, expected in ((401, detent.Unauthorized), (405, detent.InvalidArgument),
                                 (412, detent.Conflict), (501, detent.Internal)):
            with ScriptedServer((status, {}, b"<html>")) as server:
                client, _ = client_of(server)
                with self.assertRaises(detent.DetentError) as raised:
                    client.get("1")
                self.assertIs(type(raised.exception), expected)

    def test_an_answer_that_is_no_json_is_internal(self):
        with ScriptedServer((200, {}, b"{")) as server:
            client, _ = client_of(server)
            with self.assertRaises(detent.Internal):
                client.get("1")

    def test_an_element_that_failed_is_an_error_among_the_results(self):
        wrong = problem(400, "invalid_argument", field="dely")[2]
        with ScriptedServer((200, {}, {"results": [TASK, {"error": wrong}]})) as server:
            client, _ = client_of(server)
            first, second = client.schedule_many([detent.NewTask("q"), detent.NewTask("q")])
            self.assertEqual(first.id, "256")
            self.assertIs(type(second), detent.InvalidArgument)
            self.assertEqual(second.field, "dely")


def results(*each):
    return 200, {}, {"results": list(each)}


AWAY = {"status": "unavailable", "error": BUSY[2]}
HELD = {"status": "done"}
LOST = {"status": "conflict"}


class ShardsAway(unittest.TestCase):
    """If one shard of a cluster is away, a call for many elements is still answered with 200. Only
    the elements of that shard have a 503."""

    VERBS = (lambda client, leases: client.complete(leases),
             lambda client, leases: client.fail(leases, error="e"),
             lambda client, leases: client.extend(leases, 60),
             lambda client, leases: client.release(leases))

    def test_leases_are_repeated_until_their_result_is_known(self):
        for verb in self.VERBS:
            with ScriptedServer(results(HELD, AWAY, AWAY), results(AWAY, LOST), BUSY,
                                results(HELD)) as server:
                client, pauses = client_of(server)
                self.assertEqual(verb(client, ["1-1", "1-2", "1-3"]), ["done", "done", "conflict"])
                bodies = [json.loads(body) for *_, body in server.requests]
                self.assertEqual([body.pop("leases") for body in bodies],
                                 [["1-1", "1-2", "1-3"], ["1-2", "1-3"], ["1-2"], ["1-2"]])
                self.assertEqual(bodies, [bodies[0]] * 4)
                self.assertEqual(len(pauses), 3)

    def test_a_lease_of_an_absent_shard_is_unavailable_and_not_a_conflict(self):
        for verb in self.VERBS:
            with ScriptedServer(results(HELD, AWAY), answer=lambda *_: results(AWAY)) as server:
                client, pauses = client_of(server, retry_for=20)
                self.assertEqual(verb(client, ["1-1", "1-2"]), ["done", "unavailable"])
                self.assertGreater(len(pauses), 4)
                self.assertLessEqual(sum(pauses), 20)

    def test_known_results_are_returned_if_a_repeat_fails(self):
        broken = {"status": "error", "error": problem(500, "data_loss")[2]}
        for failure in (problem(403, "forbidden"), problem(500, "internal")):
            with ScriptedServer(results(HELD, AWAY, broken), failure) as server:
                client, _ = client_of(server)
                self.assertEqual(client.complete(["1-1", "1-2", "1-3"]),
                                 ["done", "unavailable", "error"])

    def test_tasks_are_repeated_if_the_call_may_run_twice(self):
        gone = {"error": problem(404, "not_found")[2]}
        away = {"error": BUSY[2]}
        keyed = [detent.NewTask("q", key="a"), detent.NewTask("q", key="b")]
        calls = ((lambda client: client.schedule_many(keyed), results(TASK)),
                 (lambda client: client.move_many(["1", "2"], delay="1s"), results(TASK)),
                 (lambda client: client.cancel_many(["1", "2"]), results(TASK)))
        for call, last in calls:
            with ScriptedServer(results(away, TASK), last) as server:
                client, _ = client_of(server)
                self.assertFalse([one for one in call(client)
                                  if isinstance(one, detent.DetentError)])
                self.assertEqual(len(server.requests), 2)
        with ScriptedServer(results(TASK, away), results(gone)) as server:
            client, _ = client_of(server)
            error = client.cancel_many(["1", "2"])[1]
            self.assertIs(type(error), detent.NotFound)
            self.assertTrue(error.is_repeated)
        with ScriptedServer(results(away, TASK)) as server:
            client, _ = client_of(server)
            first, _ = client.schedule_many([detent.NewTask("q"), keyed[0]])
            self.assertIs(type(first), detent.Unavailable)


class TaskServer:
    """Hands out the tasks 1 … `count`, each once. `result_of(verb, lease, times)` gives the answer
    to each call for a lease; `times` counts the calls with this verb and lease."""

    def __init__(self, count, result_of):
        self.count, self.result_of = count, result_of
        self.asked = {}
        self.leased = 0
        self.is_asked_for_more = threading.Event()
        self.lock = threading.Lock()

    def __call__(self, path, body):
        verb, wanted = path.rsplit("/", 1)[1], json.loads(body)
        with self.lock:
            if verb == "lease":
                tasks = [self.task(n) for n in range(self.leased + 1, self.count + 1)]
                tasks = tasks[:wanted["max"]]
                self.leased += len(tasks)
                if not tasks:
                    self.is_asked_for_more.set()
                return 200, {}, {"tasks": tasks}
            answers = []
            for lease in wanted["leases"]:
                times = self.asked[verb, lease] = self.asked.get((verb, lease), 0) + 1
                answers.append(self.result_of(verb, lease, times))
            # Like a cluster: if all elements failed with the same error, the whole call fails.
            return BUSY if all(answer is AWAY for answer in answers) else results(*answers)

    def task(self, number):
        return {**TASK, "id": str(number), "lease": f"1-{number}", "attempt": 1, "priority": 0,
                "payload": number, "lease_until": TASK["due_at"], "lateness_ms": 0}


class WorkersOfAClusterWithAShardAway(unittest.TestCase):
    PATIENCE = 60  # seconds until a test that hangs fails

    def worker(self, tasks, handler, retry_for=0, **options):
        server = ScriptedServer(answer=tasks)
        self.addCleanup(server.__exit__)
        client = detent.Client(server.url, retry_for=retry_for)
        self.errors = []
        worker = detent.Worker(client, "q", handler, wait=0, on_error=self.errors.append,
                               **options)
        worker.start()
        return worker

    def kinds(self):
        return {type(error) for error in self.errors}

    def test_a_report_is_repeated_until_the_shard_is_back(self):
        for verb in ("complete", "fail"):
            def handle(_, verb=verb):
                if verb == "fail":
                    raise ValueError("no")

            tasks = TaskServer(2, lambda verb, lease, times: AWAY if lease == "1-2" and times < 4
                               else HELD)
            worker = self.worker(tasks, handle, concurrency=2)
            self.assertTrue(tasks.is_asked_for_more.wait(self.PATIENCE))
            worker.stop()
            self.assertEqual((tasks.asked[verb, "1-1"], tasks.asked[verb, "1-2"]), (1, 4))
            self.assertEqual(self.kinds(), {detent.Unavailable})

    def test_a_lease_that_could_not_be_extended_is_kept(self):
        abandoned, enough = [], threading.Event()

        def result_of(verb, lease, times):
            if verb == "extend" and lease == "1-2" and times == 4:
                enough.set()
            return AWAY if verb == "extend" and lease == "1-2" and times < 4 else HELD

        def handle(task):
            self.assertTrue(enough.wait(self.PATIENCE))
            abandoned.append(task.abandoned.is_set())

        tasks = TaskServer(3, result_of)
        worker = self.worker(tasks, handle, concurrency=2, prefetch=1, visibility_timeout=0.3)
        self.assertTrue(tasks.is_asked_for_more.wait(self.PATIENCE))
        worker.stop()
        self.assertEqual(abandoned, [False] * 3)
        self.assertEqual([tasks.asked["complete", f"1-{n}"] for n in (1, 2, 3)], [1, 1, 1])
        self.assertEqual(self.kinds(), {detent.Unavailable})

    def test_an_extension_is_not_repeated_within_its_call(self):
        enough = threading.Event()

        def result_of(verb, _, times):
            if verb == "extend" and times > 2:
                enough.set()
            return AWAY if verb == "extend" else HELD

        tasks = TaskServer(1, result_of)
        worker = self.worker(tasks, lambda _: self.assertTrue(enough.wait(self.PATIENCE)),
                             retry_for=5, visibility_timeout=0.05)
        self.assertTrue(tasks.is_asked_for_more.wait(self.PATIENCE))
        told = len(self.errors)
        worker.stop()
        self.assertGreaterEqual(told, 2, "each call of the worker ends")
        self.assertEqual(self.kinds(), {detent.Unavailable})

    def test_a_report_ends_when_the_lease_has_expired(self):
        tasks = TaskServer(1, lambda *_: AWAY)
        worker = self.worker(tasks, lambda _: None, visibility_timeout=0.05)
        self.assertTrue(tasks.is_asked_for_more.wait(self.PATIENCE))
        worker.stop()
        self.assertEqual(self.kinds(), {detent.Unavailable})

    def test_a_stop_ends_reports_after_its_grace(self):
        reported = threading.Event()

        def result_of(verb, *_):
            if verb == "complete":
                reported.set()
            return AWAY if verb == "complete" else HELD

        worker = self.worker(TaskServer(1, result_of), lambda _: None)
        self.assertTrue(reported.wait(self.PATIENCE))
        worker.stop(grace=0)
        self.assertEqual(self.kinds(), {detent.Unavailable})

    def test_a_conflict_after_an_unknown_outcome_says_so(self):
        tasks = TaskServer(1, lambda verb, lease, times: AWAY if times == 1 else LOST)
        worker = self.worker(tasks, lambda _: None)
        self.assertTrue(tasks.is_asked_for_more.wait(self.PATIENCE))
        worker.stop()
        self.assertIn("or an earlier report was carried out", str(self.errors[-1]))


class WorkersOfAServerThatAnswersWrongly(unittest.TestCase):
    PATIENCE = 60  # seconds until a test that hangs fails

    def errors_of(self, tasks):
        """Returns the errors of a worker that gets wrong answers and then does one task."""
        errors, done = [], threading.Event()
        with ScriptedServer(answer=tasks) as server:
            worker = detent.Worker(detent.Client(server.url, retry_for=0), "q",
                                   lambda task: done.set() if task.id == "2" else None, wait=0,
                                   on_error=errors.append)
            worker.start()
            self.assertTrue(done.wait(self.PATIENCE), "the worker's threads continue")
            worker.stop()
        return errors

    def test_a_lease_answer_without_a_field_is_reported_and_repeated(self):
        tasks = TaskServer(2, lambda *_: HELD)
        wrong = [(200, {}, {"tasks": [{"id": "9"}]}), (200, {}, {}), (200, {}, [])]

        def answer(path, body):
            return wrong.pop() if wrong and path.endswith("/lease") else tasks(path, body)

        self.assertEqual([type(error) for error in self.errors_of(answer)], [detent.Internal] * 3)

    def test_an_answer_without_the_lease_is_reported(self):
        tasks = TaskServer(2, lambda *_: HELD)
        wrong = [results()]

        def answer(path, body):
            return wrong.pop() if wrong and path.endswith("/complete") else tasks(path, body)

        self.assertEqual([type(error) for error in self.errors_of(answer)], [detent.Internal])


class Wire(unittest.TestCase):
    def test_a_task_is_sent_with_all_its_fields(self):
        with ScriptedServer(DONE) as server:
            client = detent.Client(server.url, token="t0")
            due = datetime.datetime(2026, 1, 2, 3, 4, 5, 678900, datetime.timezone.utc)
            client.schedule("q", b"\0\xff", due_at=due, key="k", priority=1, max_attempts=2,
                            visibility_timeout=1.0005, backoff=Backoff("1s", 60),
                            webhook="http://a/", headers={"X-A": "b"})
            _, path, headers, body = server.requests[0]
            self.assertEqual(path, "/v1/tasks")
            self.assertEqual(headers["authorization"], "Bearer t0")
            self.assertEqual(json.loads(body), {
                "queue": "q", "payload_base64": "AP8=", "due_at": 1767323045679, "key": "k",
                "priority": 1, "max_attempts": 2, "visibility_timeout_ms": 1001,
                "backoff": {"initial": "1s", "max_ms": 60000}, "webhook": "http://a/",
                "headers": {"X-A": "b"}})

    def test_durations_are_rounded_up(self):
        self.assertEqual(to_milliseconds(0.1), 100)
        self.assertEqual(to_milliseconds(0.1001), 101)
        self.assertEqual(to_milliseconds(datetime.timedelta(microseconds=1)), 1)
        self.assertEqual(to_milliseconds(datetime.timedelta(days=30)), 2_592_000_000)

    def test_names_are_encoded_in_paths(self):
        with ScriptedServer(DONE, DONE) as server:
            client, _ = client_of(server)
            client.move(detent.TaskKey("a/b;c", "ä ?#%/.."), delay="1s")
            client.run_now("256")
            self.assertEqual(server.requests[0][1],
                             "/v1/queues/a%2Fb%3Bc/keys/%C3%A4%20%3F%23%25%2F..")
            self.assertEqual(server.requests[1][1], "/v1/tasks/256/run")

    def test_a_url_that_is_more_than_a_host_is_refused(self):
        for url in ("127.0.0.1:7070", "http://", "http://a/b", "http://u@a", "ftp://a"):
            with self.assertRaises(ValueError):
                detent.Client(url)

    def test_a_timeout_of_zero_or_more_than_a_day_is_refused(self):
        for timeout in (0, -1, float("nan"), float("inf"), 86_401):
            with self.subTest(timeout=timeout), self.assertRaisesRegex(ValueError, "timeout"):
                detent.Client(timeout=timeout)
        detent.Client(timeout=86_400)

    def test_a_naive_datetime_is_refused(self):
        client = detent.Client()
        with self.assertRaises(ValueError):
            client.schedule("q", due_at=datetime.datetime(2026, 1, 2))


class Webhooks(unittest.TestCase):
    # The example of Standard Webhooks' specification and libraries.
    KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    HEADERS = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
               "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}
    BODY = b'{"test": 2432232314}'

    def verify(self, keys=KEY, headers=None, body=BODY, now=1614265330):
        return detent.verify_webhook(keys, {**self.HEADERS, **(headers or {})}, body, now=now)

    def test_the_published_example_is_genuine(self):
        self.assertEqual(self.verify(), "msg_p5jXN8AQM9LWM0D4loKWxJek")

    def test_one_matching_key_and_signature_are_enough(self):
        other = "whsec_" + base64.b64encode(b"x" * 24).decode()
        both = "v1,AAAA " + self.HEADERS["webhook-signature"]
        self.verify([other, self.KEY], {"webhook-signature": both})
        self.verify(headers={"Webhook-Signature": both})

    def test_a_changed_webhook_is_refused(self):
        for change in ({"body": self.BODY + b" "}, {"now": 1614265330 + 301},
                       {"now": 1614265330 - 301}, {"headers": {"webhook-id": "msg_2"}},
                       {"headers": {"webhook-timestamp": "now"}},
                       {"headers": {"webhook-signature": "v1,"}},
                       {"headers": {"webhook-signature": "v2,é"}},
                       {"keys": "whsec_" + base64.b64encode(b"x" * 24).decode()}):
            with self.assertRaises(detent.InvalidSignature):
                self.verify(**change)
        with self.assertRaises(detent.InvalidSignature):
            detent.verify_webhook(self.KEY, {}, self.BODY)

    def test_an_invalid_key_is_an_error_of_the_caller(self):
        for key in ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_%"):
            with self.assertRaises(ValueError):
                self.verify(key)

    def test_the_signature_covers_id_timestamp_and_body(self):
        secret = base64.b64decode(self.KEY[6:])
        signed = hmac.new(secret, b"i.1.\xff", hashlib.sha256).digest()
        self.assertEqual("i", detent.verify_webhook(self.KEY, {
            "webhook-id": "i", "webhook-timestamp": "1",
            "webhook-signature": "v1," + base64.b64encode(signed).decode()}, b"\xff", now=1))


if __name__ == "__main__":
    unittest.main()
