#!/usr/bin/env python3
"""Tests the traces of the real program with a collector of OTLP over HTTP.

The collector keeps the spans. The tests compare ids, parents and the order of times, and never a
time itself.

The argument is the program.
"""

import http.server
import json
import pathlib
import queue
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

PROGRAM = sys.argv[1]
PATIENCE = 60
TRACE = "0af7651916cd43dd8448eb211c80319c"
PRODUCER = "b7ad6b7169203331"
SAMPLED = f"00-{TRACE}-{PRODUCER}-01"
UNSAMPLED = f"00-{TRACE}-{PRODUCER}-00"


class Receiver:
    """An HTTP server that keeps the requests, and answers with `statuses`, then with 200."""

    def __init__(self, *statuses):
        self.received = queue.Queue()
        waiting = list(statuses)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler):
                body = handler.rfile.read(int(handler.headers["content-length"]))
                self.received.put((handler.path, handler.headers, body))
                handler.send_response(waiting.pop(0) if waiting else 200)
                handler.send_header("content-length", "0")
                handler.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def attributes_of(owner):
    return {one["key"]: next(iter(one["value"].values())) for one in owner["attributes"]}


class Collector(Receiver):
    """Gives spans by the first word of their name."""

    def __init__(self, *statuses):
        super().__init__(*statuses)
        self.spans = []

    def take(self, *steps):
        """Waits for one more span of each step, and removes these spans."""
        taken = []
        for step in steps:
            while not (found := [span for span in self.spans if span["step"] == step]):
                self.read()
            taken.append(found[0])
            self.spans.remove(found[0])
        return taken

    def read(self):
        path, headers, body = self.received.get(timeout=PATIENCE)
        assert (path, headers["content-type"]) == ("/v1/traces", "application/json")
        for resource in json.loads(body)["resourceSpans"]:
            assert attributes_of(resource["resource"])["service.name"] == "detent"
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    span["step"] = span["name"].split(" ")[0]
                    span["attributes"] = attributes_of(span)
                    span["began"] = int(span["startTimeUnixNano"])
                    span["ended"] = int(span["endTimeUnixNano"])
                    self.spans.append(span)


class Server:
    def __init__(self, folder, *flags):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", folder, "--http", "127.0.0.1:0", "--beanstalk",
             "127.0.0.1:0", "--webhook-allow", "127.0.0.0/8", *flags], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        lines = []
        while not any("beanstalk" in line for line in lines):
            lines.append(self.process.stdout.readline())
            assert lines[-1], "the server has ended"
        text = "".join(lines)
        self.url = re.search(r"http://[\d.:]+", text)[0]
        self.beanstalk_port = int(re.search(r"beanstalk.*?127\.0\.0\.1:(\d+)", text, re.S)[1])

    def call(self, method, path, body=None, headers=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers or {}, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def post(self, path, body=None, headers=None):
        return json.loads(self.call("POST", path, body or {}, headers))

    def lease(self, name):
        return self.post(f"/v1/queues/{name}/lease", {"wait": "30s"})["tasks"][0]

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class Tracing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.collector = self.started(Collector())

    def started(self, what):
        self.addCleanup(what.stop)
        return what

    def server(self, *flags):
        return self.started(Server(self.folder, "--otlp-endpoint", self.collector.url, *flags))

    def check_parts(self, spans):
        for span in spans:
            self.assertLessEqual(span["began"], span["ended"], span)
            self.assertRegex(span["traceId"], "^[0-9a-f]{32}$")
            self.assertRegex(span["spanId"], "^[0-9a-f]{16}$")
            self.assertEqual(span["attributes"]["messaging.system"], "detent")
        self.assertEqual(len({span["spanId"] for span in spans}), len(spans))
        self.assertEqual(len({span["traceId"] for span in spans}), 1)

    def test_a_task_from_accept_to_complete(self):
        server = self.server()
        task = server.post("/v1/tasks", {"queue": "q", "delay": "50ms"}, {"traceparent": SAMPLED})
        leased = server.lease("q")
        self.assertEqual(leased["headers"]["traceparent"], SAMPLED)
        server.post("/v1/leases/complete", {"leases": [leased["lease"]]})
        spans = self.collector.take("accept", "wait", "lease", "complete")
        self.check_parts(spans)
        accept, wait, lease, complete = spans
        self.assertEqual(accept["traceId"], TRACE)
        for span in (accept, wait, lease):
            self.assertEqual(span["parentSpanId"], PRODUCER)
        self.assertEqual(complete["parentSpanId"], lease["spanId"])
        for span in spans:
            self.assertEqual(span["attributes"]["messaging.destination.name"], "q")
            self.assertEqual(span["attributes"]["messaging.message.id"], str(task["id"]))
        self.assertLessEqual(accept["began"], wait["began"])
        self.assertEqual(wait["ended"], lease["began"])
        self.assertLessEqual(lease["began"], complete["began"])
        self.assertLessEqual(lease["ended"], complete["ended"])

    def test_a_failed_attempt_and_the_next_attempt_are_in_one_trace(self):
        server = self.server()
        server.post("/v1/tasks", {"queue": "q", "max_attempts": 3}, {"traceparent": SAMPLED})
        server.post("/v1/leases/fail", {"leases": [server.lease("q")["lease"]], "delay": "1ms"})
        server.post("/v1/leases/release", {"leases": [server.lease("q")["lease"]]})
        spans = self.collector.take("lease", "fail", "lease", "release")
        self.check_parts(spans)
        first, fail, second, release = spans
        self.assertEqual(fail["parentSpanId"], first["spanId"])
        self.assertEqual(release["parentSpanId"], second["spanId"])
        self.assertEqual(first["attributes"]["detent.attempt"], "1")
        self.assertEqual(second["attributes"]["detent.attempt"], "2")

    def test_the_trace_goes_on_after_a_restart(self):
        server = self.server()
        server.post("/v1/tasks", {"queue": "q"})
        server.stop()  # sends the spans that are left
        again = self.server()
        again.post("/v1/leases/complete", {"leases": [again.lease("q")["lease"]]})
        spans = self.collector.take("accept", "wait", "lease", "complete")
        self.check_parts(spans)
        accept, wait, lease, complete = spans
        self.assertNotIn("parentSpanId", accept)  # without a traceparent, the trace begins here
        self.assertEqual(wait["parentSpanId"], accept["spanId"])
        self.assertEqual(lease["parentSpanId"], accept["spanId"])
        self.assertEqual(complete["parentSpanId"], lease["spanId"])
        self.assertLessEqual(accept["began"], lease["began"])

    def test_a_webhook_is_called_within_its_lease(self):
        hook = self.started(Receiver(500))
        server = self.server()
        server.post("/v1/tasks", {"queue": "q", "webhook": hook.url + "/in?secret=canary",
                                  "backoff": {"initial": "1ms", "max": "1ms"}},
                    {"traceparent": SAMPLED})
        spans = self.collector.take("accept", "wait", "lease", "deliver", "fail", "wait", "lease",
                                    "deliver", "complete")
        self.check_parts(spans)
        _, _, first, failed, fail, _, second, delivered, complete = spans
        for lease, call, end in ((first, failed, fail), (second, delivered, complete)):
            self.assertEqual(call["parentSpanId"], lease["spanId"])
            self.assertEqual(end["parentSpanId"], lease["spanId"])
            self.assertLessEqual(lease["began"], call["began"])
            self.assertLessEqual(call["ended"], end["ended"])
        self.assertEqual(failed["status"]["code"], 2)
        self.assertEqual(failed["attributes"]["error.type"], "status")
        self.assertEqual(failed["attributes"]["http.response.status_code"], "500")
        self.assertNotIn("status", delivered)
        self.assertEqual(delivered["attributes"]["server.address"], "127.0.0.1")
        self.assertNotIn("canary", json.dumps(spans))
        self.assertEqual(hook.received.get(timeout=PATIENCE)[1]["traceparent"], SAMPLED)

    def test_each_task_of_a_batch_is_traced(self):
        server = self.server()
        server.post("/v1/tasks/batch", [{"queue": "q"}, {"queue": 5}, {"queue": "q"}],
                    {"traceparent": SAMPLED})
        first, second = self.collector.take("accept", "accept")
        self.check_parts([first, second])
        self.assertNotEqual(first["attributes"]["messaging.message.id"],
                            second["attributes"]["messaging.message.id"])

    def test_a_beanstalk_job_is_traced(self):
        server = self.server()
        with socket.create_connection(("127.0.0.1", server.beanstalk_port), PATIENCE) as client:
            answers = client.makefile("rb")
            client.sendall(b"put 0 0 60 4\r\nbody\r\nwatch default\r\nreserve\r\n")
            number = answers.readline().split()[1]
            self.assertEqual(answers.readline(), b"WATCHING 1\r\n")
            self.assertEqual(answers.readline(), b"RESERVED " + number + b" 4\r\n")
            answers.readline()
            client.sendall(b"bury " + number + b" 0\r\nkick 1\r\nreserve\r\ndelete " + number +
                           b"\r\n")
            self.assertEqual(answers.readline(), b"BURIED\r\n")
            spans = self.collector.take("accept", "wait", "lease", "bury", "lease", "complete")
        self.check_parts(spans)
        accept, wait, lease, bury, again, complete = spans
        self.assertEqual(wait["parentSpanId"], accept["spanId"])
        self.assertEqual(lease["parentSpanId"], accept["spanId"])
        self.assertEqual(bury["parentSpanId"], lease["spanId"])
        self.assertEqual(complete["parentSpanId"], again["spanId"])

    def test_producers_and_the_ratio_decide_what_is_sampled(self):
        server = self.server("--otlp-ratio", "0")
        plain = server.post("/v1/tasks", {"queue": "q"})
        self.assertNotIn("traceparent", server.call("GET", f"/v1/tasks/{plain['id']}"))
        server.post("/v1/tasks", {"queue": "q"}, {"traceparent": UNSAMPLED})
        for _ in range(2):
            server.post("/v1/leases/complete", {"leases": [server.lease("q")["lease"]]})
        server.post("/v1/tasks", {"queue": "q"}, {"traceparent": SAMPLED})
        server.post("/v1/leases/complete", {"leases": [server.lease("q")["lease"]]})
        spans = self.collector.take("accept", "wait", "lease", "complete")
        self.check_parts(spans)
        server.stop()
        while not self.collector.received.empty():
            self.collector.read()
        self.assertEqual(self.collector.spans, [])

    def test_spans_are_counted_and_a_collector_that_is_away_harms_no_task(self):
        self.collector.stop()
        server = self.server()
        server.post("/v1/tasks", {"queue": "q"})
        server.post("/v1/leases/complete", {"leases": [server.lease("q")["lease"]]})
        page = server.call("GET", "/metrics")
        for end in ("sent", "dropped", "refused"):
            self.assertIn(f'detent_trace_spans_total{{end="{end}"}} 0', page)

    def test_without_an_endpoint_nothing_is_traced(self):
        server = self.started(Server(self.folder))
        task = server.post("/v1/tasks", {"queue": "q"})
        self.assertNotIn("traceparent", server.call("GET", f"/v1/tasks/{task['id']}"))
        self.assertNotIn("detent_trace_spans_total", server.call("GET", "/metrics"))

    def test_a_wrong_endpoint_is_wrong_usage(self):
        for endpoint in ("127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://127.0.0.1?a=b"):
            with self.subTest(endpoint):
                run = subprocess.run(
                    [PROGRAM, "serve", "--data", self.folder, "--http", "127.0.0.1:0",
                     "--otlp-endpoint", endpoint], capture_output=True, text=True)
                self.assertEqual(run.returncode, 2, run.stderr)
                self.assertIn("--otlp-endpoint", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
