"""Takes every field of a task, of the settings of a queue and of a schedule through the server.

    python3 every_field_test.py DETENT-PROGRAM

The fields are those of the server's OpenAPI document, and the test makes their values from the
schemas. So a new field is tested without a change of this file. The way of a field is: request,
get, list, dump, restore on a second server, get. The test fails if a field is lost on its way, or
if no object of the test has it.
"""

import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.request

PROGRAM = sys.argv.pop(1)
PATIENCE = 60  # seconds until a request that hangs fails
FUTURE = "2100-01-02T03:04:05.678Z"

VALUES = {  # of schemas for which any value of the type would be wrong
    "QueueName": "q", "Time": FUTURE, "TimeIn": FUTURE, "Key": "k", "Base64": "/w==",
    "Headers": {"X-A": "b"}, "Payload": {"n": [1, {"a": "b"}]}, "DurationIn": "7s",
    "WebhookUrl": "https://hooks.example/a", "SinkName": "s", "MillisecondsIn": 7_000,
}
VALUES_OF_MEMBERS = {
    "anchor": "2025-01-02T03:04:05.678Z", "start": "2025-01-02T03:04:05.678Z",
    "time_zone": "Europe/Berlin", "cron": "30 2 * * *", "url": "https://hooks.example/b",
    "keys": ["whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"], "priority": 8, "paused": True,
}
# Members of which a request has at most one.
ALTERNATIVES = {
    "NewTask": [("payload", "payload_base64"), ("delay", "delay_ms", "due_at"),
                ("visibility_timeout", "visibility_timeout_ms"), ("max_wait", "max_wait_ms")],
    "QueueChange": [("visibility_timeout", "visibility_timeout_ms"),
                    ("retention", "retention_ms"), ("key_retention", "key_retention_ms"),
                    ("webhook", "sink")],
    "NewSchedule": [("payload", "payload_base64"), ("cron", "every", "every_ms", "calendar"),
                    ("visibility_timeout", "visibility_timeout_ms"), ("jitter", "jitter_ms"),
                    ("misfire_grace", "misfire_grace_ms")],
    "BackoffIn": [("initial", "initial_ms"), ("max", "max_ms")],
}
# Members that a request with another member does not have.
EXCLUDED_BY = {"cron": {"anchor"}, "every": {"gap", "repeat"}, "every_ms": {"gap", "repeat"}}
# Members of a request that are not kept: the answer has the due time, and on_key and max_wait are
# about the request itself.
NOT_KEPT = {"delay", "delay_ms", "on_key", "max_wait", "max_wait_ms"}
# Fields that no object of the test has, with the reason.
OF_LEASE = "a lease ends when the server is dumped"
BY_TIME = "set when the time of an occurrence has come"
NOT_SEEN = {
    "Task": {"leased_at": OF_LEASE, "worker": OF_LEASE, "late_ms": OF_LEASE},
    "QueueSettings": {},
    "Schedule": dict.fromkeys(("last_at", "last_task", "queued_at"), BY_TIME)
                | {"error": "of a schedule whose time zone is gone",
                   "next_at": "a paused schedule has none, and others change with time"},
}


class Server:
    def __init__(self, folder):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", folder, "--http", "127.0.0.1:0",
             "--beanstalk", "off"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        while "http://" not in line:
            assert line, "the server has ended"
            line = self.process.stdout.readline()
        self.url = "http://" + line.split("http://")[1].split()[0].rstrip("/,")

    def text(self, method, path, body=None):
        data = body if isinstance(body, str) or body is None else json.dumps(body)
        request = urllib.request.Request(self.url + path, data and data.encode(), method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def call(self, method, path, body=None):
        return json.loads(self.text(method, path, body))

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class EveryField(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.first, cls.second = (cls.server(name) for name in ("first", "second"))
        cls.schemas = cls.first.call("GET", "/openapi.json")["components"]["schemas"]

    @classmethod
    def server(cls, name):
        server = Server(str(pathlib.Path(cls.folder.name, name)))
        cls.addClassCleanup(server.stop)
        return server

    def value(self, schema, name=""):
        """A value of the schema that is not the default of any field."""
        if name in VALUES_OF_MEMBERS:
            return VALUES_OF_MEMBERS[name]
        if "$ref" in schema:
            ref = schema["$ref"].rsplit("/", 1)[1]
            return VALUES[ref] if ref in VALUES else self.value(self.schemas[ref] | {"ref": ref})
        if "oneOf" in schema:
            return self.value(schema["oneOf"][0])
        if "enum" in schema:
            return schema["enum"][-1]
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if types[0] == "object":
            return self.objects(schema)[0]
        if types[0] == "string":
            return "7s"  # a duration; other texts have a schema of their own
        return {"integer": 7_000 if name.endswith("_ms") else 3, "boolean": True}[types[0]]

    def objects(self, schema):
        """Objects that have all members of the schema together."""
        members = set(schema["properties"])
        groups = ALTERNATIVES.get(schema.get("ref"), [])
        always = members.difference(*groups)
        objects = []
        for chosen in list(itertools.zip_longest(*groups)) or [()]:
            names = [name or group[0] for name, group in zip(chosen, groups)]
            excluded = set().union(*(EXCLUDED_BY.get(name, set()) for name in names))
            objects.append({name: self.value(schema["properties"][name], name)
                            for name in sorted(always.union(names) - excluded)})
        self.assertEqual(members.difference(*objects), set(), "no object has these members")
        return objects

    def requests(self, name):
        return self.objects(self.schemas[name] | {"ref": name})

    def check_answer(self, request, answer):
        """The answer has the value of each member of the request."""
        for name, value in request.items():
            if name in NOT_KEPT:
                continue
            with self.subTest(member=name):
                if name not in answer:  # a duration as text
                    name, value = name + "_ms", 7_000
                if name == "backoff":
                    value = {"initial_ms": 7_000, "max_ms": 7_000}
                if name == "webhook" and isinstance(answer[name], dict):
                    answer = {name: answer[name]["url"]}
                    value = value if isinstance(value, str) else value["url"]
                self.assertEqual(answer[name], value)

    def check_all_seen(self, schema, answers):
        """Each field of the schema has a value in one of the answers."""
        seen = {name for answer in answers for name, value in answer.items() if value is not None}
        self.assertEqual(self.schemas[schema]["properties"].keys() - seen,
                         NOT_SEEN[schema].keys())

    def restored(self, paths):
        """The answers of a second server that has the dump of the first."""
        dump = self.first.text("GET", "/v1/dump")
        self.assertEqual(self.second.call("POST", "/v1/restore", dump)["errors"], [])
        self.assertEqual(self.second.text("GET", "/v1/dump"), dump)
        return [self.second.call("GET", path) for path in paths]

    def test_a_task(self):
        requests = [request | {"key": str(index)}
                    for index, request in enumerate(self.requests("NewTask"))]
        for request in requests:
            if "due_at" in request:  # max_wait would make it earlier
                request.pop("max_wait", None)
                request.pop("max_wait_ms", None)
        paths = [f"/v1/tasks/{self.first.call('POST', '/v1/tasks', request)['id']}"
                 for request in requests]
        paths += [self.failed_task({"delay": "9d"}), self.failed_task({"final": True})]
        answers = [self.first.call("GET", path) for path in paths]
        for request, answer in zip(requests, answers):
            self.check_answer(request, answer)
        self.check_all_seen("Task", answers)
        listed = {task["id"]: task for task in self.first.call("GET", "/v1/tasks")["tasks"]}
        for answer in answers:
            in_list = {name: value for name, value in answer.items() if name != "history"}
            self.assertEqual(listed[answer["id"]], in_list)
        self.assertEqual(self.restored(paths), answers)

    def failed_task(self, how):
        """The path of a task with a history."""
        task = self.first.call("POST", "/v1/tasks", {"queue": "failing"})
        lease = self.first.call("POST", "/v1/queues/failing/lease", {"wait": "30s", "worker": "w"})
        self.first.call("POST", "/v1/leases/fail", {"leases": [lease["tasks"][0]["lease"]],
                                                    "error": "no"} | how)
        return f"/v1/tasks/{task['id']}"

    def test_settings_of_a_queue(self):
        requests = self.requests("QueueChange")
        paths = [f"/v1/queues/settings-{index}" for index in range(len(requests))]
        answers = [self.first.call("PATCH", path, request)
                   for path, request in zip(paths, requests)]
        for request, answer in zip(requests, answers):
            self.check_answer(request, answer["settings"])
        self.check_all_seen("QueueSettings", [answer["settings"] for answer in answers])
        listed = {queue["queue"]: queue for queue in self.first.call("GET", "/v1/queues")["queues"]}
        for path, answer in zip(paths, answers):
            self.assertEqual(self.first.call("GET", path), answer)
            self.assertEqual(listed[answer["queue"]], answer)
        self.assertEqual(self.restored(paths), answers)

    def test_a_schedule(self):
        requests = self.requests("NewSchedule")
        paths = [f"/v1/schedules/s{index}" for index in range(len(requests))]
        for path, request in zip(paths, requests):
            self.check_answer(request, self.first.call("PUT", path, request))
            self.first.call("POST", path + "/pause")
        answers = [self.first.call("GET", path) for path in paths]
        self.check_all_seen("Schedule", answers)
        listed = {one["name"]: one for one in self.first.call("GET", "/v1/schedules")["schedules"]}
        for answer in answers:
            self.assertEqual(listed[answer["name"]], answer)
        self.assertEqual(self.restored(paths), answers)


if __name__ == "__main__":
    unittest.main()
