"""The server delivers due tasks to real brokers. The brokers and the server are killed and
started again.

    DETENT_BINARY=… python3 sinks_test.py KAFKA_MOCK
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

from brokers import Kafka, Nats, Redis, wait_for
from child_programs import die_with_parent

PROGRAM = os.environ["DETENT_BINARY"]
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
MANY = 1_000


class Server:
    """A server with the sink `events`. The queue `q` goes to this sink."""

    def __init__(self, broker):
        self.folder = tempfile.TemporaryDirectory(prefix="detent-sinks-")
        self.log = pathlib.Path(self.folder.name) / "log"
        self.sinks = pathlib.Path(self.folder.name) / "sinks"
        self.sinks.write_text(f"# where it goes\nevents {broker.url}\n", "utf-8")
        self.address = "127.0.0.1:0"
        self.process = None
        self.start()
        self.call("PATCH", "/v1/queues/q",
                  {"sink": "events", "max_attempts": 2, "backoff": {"initial": "1s", "max": "1s"}})

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "serve", "--data", f"{self.folder.name}/data", "--http", self.address,
                 "--beanstalk", "off", "--sinks", str(self.sinks)],
                stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=die_with_parent)
        self.address = re.search(r"http://([\d.]+:\d+)", self.process.stdout.readline())[1]

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            f"http://{self.address}{path}", method=method,
            data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def put(self, payload, **more):
        return self.call("POST", "/v1/tasks", {"queue": "q", "payload": payload, **more})["id"]

    def put_many(self, count):
        made = self.call("POST", "/v1/tasks/batch",
                         [{"queue": "q", "payload": i} for i in range(count)])
        return {one["id"] for one in made["results"]}

    def queue(self):
        return self.call("GET", "/v1/queues/q")

    def is_done(self):
        queue = self.queue()
        return queue["scheduled"] + queue["ready"] + queue["leased"] == 0

    def metrics(self):
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=30) as answer:
            return answer.read().decode()

    def end(self, number):
        self.process.send_signal(number)
        status = self.process.wait(timeout=60)
        self.process.stdout.close()
        return status

    def close(self):
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        self.folder.cleanup()


class Cases:
    """The tests for every broker. `make` starts one."""

    def setUp(self):
        self.broker = self.make()
        self.addCleanup(self.broker.close)

    def serve(self):
        server = Server(self.broker)
        self.addCleanup(server.close)
        return server

    def test_a_task_arrives_with_all_that_it_is(self):
        server = self.serve()
        task = server.put({"order": "o-1"}, key="o-1 é",
                          headers={"traceparent": TRACE, "X-Tenant": "a", "Nats-Rollup": "all"})
        wait_for(server.is_done, "the task is completed")
        [(name, fields, body)] = self.broker.messages()
        self.assertEqual((name, body), (task, '{"order": "o-1"}'))
        fields = {name.lower(): value for name, value in fields.items()}
        due = fields.pop("detent-due-at")
        self.assertRegex(due, r"^20\d\d-\d\d-\d\dT[\d:.]+Z$")
        fields.pop("nats-rollup", None)
        self.assertEqual(fields, {
            "content-type": "application/json", "detent-id": task, "detent-queue": "q",
            "detent-attempt": "1", "detent-key": "o-1%20%C3%A9", "traceparent": TRACE,
            "x-tenant": "a"})
        self.assertIn('detent_sink_deliveries_total{sink="events",end="delivered"} 1',
                      server.metrics())
        with self.assertRaises(urllib.error.HTTPError) as gone:
            server.call("GET", f"/v1/tasks/{task}")
        self.assertEqual(gone.exception.code, 404)

    def test_a_broker_that_is_killed_in_the_middle_loses_nothing_and_costs_no_attempt(self):
        server = self.serve()
        tasks = server.put_many(MANY)
        self.broker.kill()
        tasks |= server.put_many(MANY)
        wait_for(lambda: 'detent_sink_up{sink="events"} 0' in server.metrics(), "it is down")
        wait_for(lambda: server.queue()["leased"] == 0, "what was under way is given back")
        self.assertGreaterEqual(server.queue()["ready"], MANY)
        self.broker.start()
        wait_for(server.is_done, "all are completed")
        messages = list(self.broker.messages())
        self.assertEqual({name for name, _, _ in messages}, tasks)
        self.assertEqual({fields["detent-attempt"] for _, fields, _ in messages}, {"1"})
        self.assertEqual(server.queue()["dead"], 0)
        log = server.log.read_text("utf-8")
        self.assertIn("a sink does not accept tasks", log)
        self.assertIn("a sink accepts tasks again", log)
        self.assertNotIn("s3cr", log)

    def test_a_server_that_is_killed_in_the_middle_loses_nothing(self):
        server = self.serve()
        tasks = server.put_many(MANY)
        server.end(signal.SIGKILL)
        server.start()
        wait_for(server.is_done, "all are completed")
        self.assertEqual({name for name, _, _ in self.broker.messages()}, tasks)

    def test_a_server_is_started_and_stopped_while_the_broker_is_away(self):
        self.broker.kill()
        server = self.serve()
        task = server.put(1)
        wait_for(lambda: 'detent_sink_up{sink="events"} 0' in server.metrics(), "it is down")
        self.assertEqual(server.end(signal.SIGTERM), 0)
        server.start()
        self.broker.start()
        wait_for(server.is_done, "the task is completed")
        [(name, fields, _)] = self.broker.messages()
        self.assertEqual((name, fields["detent-attempt"]), (task, "1"))


class ToRedis(Cases, unittest.TestCase):
    make = Redis

    def test_a_key_that_is_no_stream_is_a_refusal(self):
        server = self.serve()
        self.broker.ask("SET", "due", "text")
        server.put(1)
        wait_for(lambda: server.queue()["dead"] == 1, "it is dead")


class ToNats(Cases, unittest.TestCase):
    make = Nats

    def test_a_subject_that_no_stream_holds_is_no_place(self):
        self.broker.ask("$JS.API.STREAM.DELETE.DUE", {})
        server = self.serve()
        server.put(1)
        wait_for(lambda: "no JetStream stream has the subject" in server.log.read_text(),
                 "it is told")
        self.assertEqual(server.queue()["ready"] + server.queue()["leased"], 1)
        self.broker.kill()
        self.broker.start()  # this also creates the stream
        wait_for(server.is_done, "the task is completed")

    def test_a_message_that_the_stream_refuses_is_dead_after_its_attempts(self):
        self.broker.ask("$JS.API.STREAM.UPDATE.DUE",
                        {"name": "DUE", "subjects": ["due"], "storage": "file",
                         "retention": "limits", "max_msg_size": 1_000})
        server = self.serve()
        large = server.put("y" * 2_000)
        small = server.put("x")
        wait_for(lambda: server.queue()["dead"] == 1, "it is dead")
        self.assertEqual([name for name, _, _ in self.broker.messages()], [small])
        history = server.call("GET", f"/v1/tasks/{large}")["history"]
        self.assertEqual(len(history), 2)
        self.assertIn("message size exceeds", history[0]["error"])


class ToKafka(Cases, unittest.TestCase):
    make = Kafka


class Settings(unittest.TestCase):
    def refusal(self, lines):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "sinks"
            file.write_text(lines, "utf-8")
            ended = subprocess.run([PROGRAM, "serve", "--data", f"{folder}/data", "--http",
                                    "127.0.0.1:0", "--beanstalk", "off", "--sinks", file],
                                   capture_output=True, text=True, timeout=60, check=False)
        self.assertNotIn("s3cret", ended.stderr + ended.stdout)
        return ended.returncode, ended.stderr

    def test_a_file_that_is_wrong_is_wrong_usage(self):
        for lines, what in (("a redis://:s3cret@h/x", "line 1: each broker must be HOST:PORT"),
                            ("a kafka://h:1/x?sasl.pasword=s3cret", "sasl.pasword"),
                            ("a kafka://h:1/x?security.protocol=s3cret", "security.protocol")):
            status, said = self.refusal(lines)
            self.assertEqual(status, 2, said)
            self.assertIn(what, said)


if __name__ == "__main__":
    Kafka.program = sys.argv[1]
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
