#!/usr/bin/env python3
"""Tests the alerts of the real program with a real HTTP server as the receiver.

The program sends one alert when a figure crosses its threshold and one when the figure recovers.
Alerts are signed with the key of the server, and the address guard applies to them.

The argument is the program.
"""

import base64
import hashlib
import hmac
import http.server
import json
import pathlib
import queue
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

PROGRAM = sys.argv[1]
PATIENCE = 60


class Receiver:
    """Answers the requests with `statuses` in order, then with 204. Keeps the requests."""

    def __init__(self, *statuses):
        self.received = queue.Queue()
        waiting = list(statuses)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler):
                body = handler.rfile.read(int(handler.headers["content-length"]))
                handler.send_response(waiting.pop(0) if waiting else 204)
                handler.end_headers()
                self.received.put((handler.headers, body))

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/alerts?from=detent"

    def next(self):
        return self.received.get(timeout=PATIENCE)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Server:
    def __init__(self, *flags):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", self.folder.name, "--http", "127.0.0.1:0", "--beanstalk",
             "off", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = re.search(r"http://[\d.:]+", self.process.stdout.readline())[0]

    def post(self, path, body=None):
        request = urllib.request.Request(self.url + path, json.dumps(body or {}).encode(),
                                         method="POST")
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())

    def key(self):
        text = (pathlib.Path(self.folder.name) / "webhook.key").read_text().strip()
        return base64.b64decode(text.removeprefix("whsec_"))

    def read_log_until(self, pattern):
        for line in self.process.stderr:
            if re.search(pattern, line):
                return line
        raise AssertionError(f"the log ended without {pattern!r}")

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        self.folder.cleanup()


class Alerts(unittest.TestCase):
    def started(self, what):
        self.addCleanup(what.stop)
        return what

    def test_one_when_it_fires_and_one_when_it_has_recovered(self):
        receiver = self.started(Receiver(500))  # the first delivery fails
        server = self.started(Server("--alert-webhook", receiver.url, "--alert-pending", "2",
                                     "--alert-dead", "0", "--webhook-allow", "127.0.0.0/8"))
        for _ in range(5):
            server.post("/v1/tasks", {"queue": "q"})
        first, body = receiver.next()
        again, body_again = receiver.next()
        self.assertEqual((first["webhook-id"], body), (again["webhook-id"], body_again))
        alert = json.loads(body)
        self.assertEqual(alert["type"], "alert.firing")
        self.assertEqual(alert["data"]["alert"], "pending")
        self.assertGreater(alert["data"]["value"], 2)
        signed = b".".join([again["webhook-id"].encode(), again["webhook-timestamp"].encode(),
                            body])
        expected = base64.b64encode(hmac.new(server.key(), signed, hashlib.sha256).digest())
        self.assertEqual(again["webhook-signature"], "v1," + expected.decode())
        # The next alert is the recovery, so there was no alert in between.
        server.post("/v1/queues/q/purge")
        self.assertEqual(json.loads(receiver.next()[1])["type"], "alert.recovered")
        server.post("/v1/tasks", {"queue": "dies", "max_attempts": 1})
        lease = server.post("/v1/queues/dies/lease", {"wait": "10s"})["tasks"][0]["lease"]
        server.post("/v1/leases/fail", {"leases": [lease]})
        self.assertEqual(json.loads(receiver.next()[1])["data"]["alert"], "dead")

    def test_addresses_that_webhooks_may_not_have_are_not_called(self):
        receiver = self.started(Receiver())
        server = self.started(Server("--alert-webhook", receiver.url, "--alert-pending", "0"))
        server.post("/v1/tasks", {"queue": "q"})
        self.assertIn("127.0.0.1", server.read_log_until("an alert could not be delivered"))
        self.assertTrue(receiver.received.empty())

    def test_wrong_settings_are_wrong_usage(self):
        for flags in (["--alert-webhook", "http://a.test/"],
                      ["--alert-webhook", "a.test", "--alert-dead", "1"],
                      ["--alert-dead", "-1"], ["--alert-lateness", "0"]):
            with self.subTest(flags), tempfile.TemporaryDirectory() as folder:
                run = subprocess.run([PROGRAM, "serve", "--data", folder, "--http", "127.0.0.1:0",
                                      "--beanstalk", "off", *flags], capture_output=True, text=True)
                self.assertEqual(run.returncode, 2, run.stderr)
                self.assertIn("alert-", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
