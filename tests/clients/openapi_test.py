"""Compares each client with the OpenAPI document of the server, so that they cannot drift apart.

    PYTHONPATH=clients/python python3 openapi_test.py OPENAPI.json CPP-PROGRAM NODE GO-PROGRAM

A server of this test knows only the document. It checks the requests against the document, and
makes its answers from the schemas. Each client has a program that makes every call with all
arguments, and prints the results (all_calls in the folders beside this file). The test then checks:

- Each request is an operation of the document, with parameters and members of the document.
- Each operation is called, except those in NOT_OFFERED.
- Each member that a request can have is sent, except those in NOT_SENT.
- Each field of each result has a value. A field is empty if its member is not in the document.

The last tests plant differences in the document, which each client must fail.
"""

import collections
import copy
import http.server
import json
import pathlib
import re
import subprocess
import sys
import threading
import unittest
import urllib.parse

FOLDER = pathlib.Path(__file__).resolve().parent
TYPESCRIPT = FOLDER.parent.parent / "clients/typescript/dist/index.js"
PATIENCE = 60  # seconds until a program that hangs fails

BY_HAND = "for an administrator, who uses the command line"
BY_PROGRAM = "for a program that watches the server"
FOR_PAGE = "for the dashboard"
NOT_OFFERED = {  # the operations that no client offers, with the reason
    "GET /": FOR_PAGE,
    "GET /assets/{name}": FOR_PAGE,
    "GET /openapi.json": "the document itself",
    "GET /healthz": BY_PROGRAM,
    "GET /readyz": BY_PROGRAM,
    "GET /metrics": BY_PROGRAM,
    "GET /v1/cluster": BY_PROGRAM,
    "GET /v1/dump": BY_HAND,
    "POST /v1/restore": BY_HAND,
    "POST /v1/backup": BY_HAND,
    "POST /v1/backup/end": BY_HAND,
    "POST /v1/schedules/{name}/backfill": BY_HAND,
    "POST /v1/occurrences": FOR_PAGE,
    "GET /v1/events": FOR_PAGE,
    "GET /v1/forecast": FOR_PAGE,
    "GET /v1/stats/history": FOR_PAGE,
    "GET /v1/wheel": FOR_PAGE,
}
# The members and parameters that clients do not send, with the reason. A duration as text is not
# missing if the duration in milliseconds is sent.
MOVE = "a move changes only the due time"
SELECTION = "a selection for the dashboard"
NOT_SENT = {
    "PATCH /v1/tasks/{id}": {"priority": MOVE, "payload": MOVE, "payload_base64": MOVE,
                             "webhook": MOVE, "headers": MOVE},
    "PATCH /v1/queues/{queue}/keys/{key}": {"priority": MOVE, "payload": MOVE, "headers": MOVE,
                                            "payload_base64": MOVE, "webhook": MOVE},
    "GET /v1/queues": dict.fromkeys(("limit", "name", "by", "sort", "state", "cursor"), SELECTION),
    "GET /v1/stats": dict.fromkeys(("queues", "by"), SELECTION),
}
NOT_SENT_BY = {  # what only some clients do not send
    "cpp": {
        "GET /v1/schedules": {"limit": "pages have the default size"},
        "PUT /v1/schedules/{name}": dict.fromkeys(("gap", "repeat"), "CronRule has no such member"),
    },
}
# The fields of results that can be empty, with the reason.
EMPTY = {"Err": "there is no error"}

VALUES = {  # of schemas for which any value of the type would be wrong
    "TaskId": "256", "Time": "2026-01-02T03:04:05.678Z", "QueueName": "q", "Key": "k",
    "Lease": "1-1", "Base64": "/w==", "Headers": {"X-A": "b"}, "Payload": {"n": 1},
    "WebhookUrl": "http://a/", "SinkName": "s", "State": "dead",
}
VALUES_OF_MEMBERS = {"time_zone": "UTC", "cron": "* * * * *"}
# No answer has all members. So the program of a client runs twice, with one of these sets left out.
ALTERNATIVES = ({"payload", "webhook", "every_ms", "calendar", "anchor"},
                {"payload_base64", "sink", "every_ms", "calendar", "anchor"})


class Document:
    """The OpenAPI document: finds operations, checks values and makes values."""

    def __init__(self, document):
        self.schemas = document["components"]["schemas"]
        self.parameters = document["components"]["parameters"]
        self.operations = {}  # by "METHOD PATH"
        for path, item in document["paths"].items():
            for method in item.keys() - {"parameters"}:
                self.operations[f"{method.upper()} {path}"] = item[method]

    def find(self, method, path):
        """Returns the name of the operation; None if there is none."""
        for name in self.operations:
            template = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(name))
            if re.fullmatch(template, f"{method} {path}"):
                return name
        return None

    def resolve(self, schema):
        return self.schemas[schema["$ref"].split("/")[-1]] if "$ref" in schema else schema

    def query_of(self, operation):
        parameters = [self.parameters[one["$ref"].split("/")[-1]] if "$ref" in one else one
                      for one in self.operations[operation].get("parameters", ())]
        return {one["name"] for one in parameters if one["in"] == "query"}

    def request_of(self, operation):
        """Returns the schema of a JSON body; None without a body."""
        content = self.operations[operation].get("requestBody", {"content": {}})["content"]
        return content.get("application/json", {}).get("schema")

    def answer_of(self, operation):
        answers = self.operations[operation]["responses"]
        status = min(answers)
        return int(status), answers[status]["content"]["application/json"]["schema"]

    def members_of(self, schema):
        """Returns the names of the members of an object, or of the elements of an array."""
        schema = self.resolve(schema)
        members = set(schema.get("properties", ()))
        for one in schema.get("oneOf", ()):
            members |= self.members_of(one)
        return members | (self.members_of(schema["items"]) if "items" in schema else set())

    def wrong(self, value, schema, place):
        """Yields the differences between a value and a schema."""
        schema = self.resolve(schema)
        if "oneOf" in schema:
            tries = [[*self.wrong(value, one, place)] for one in schema["oneOf"]]
            yield from min(tries, key=len)
            return
        if "enum" in schema and value not in schema["enum"]:
            yield f"{place}: {value!r} is not one of {schema['enum']}"
        types = schema.get("type", ())
        if types and type_of(value) not in ([types] if isinstance(types, str) else types):
            yield f"{place}: {value!r} is not of type {types}"
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not (
                schema.get("minimum", value) <= value <= schema.get("maximum", value)):
            yield f"{place}: {value!r} is outside the limits"
        if isinstance(value, dict) and schema.get("additionalProperties", True) is False:
            for name in sorted(value.keys() - schema["properties"].keys()):
                yield f"{place}: the document has no member {name}"
        if isinstance(value, dict):
            for name in sorted(set(schema.get("required", ())) - value.keys()):
                yield f"{place}: the member {name} is missing"
            for name, member in schema.get("properties", {}).items():
                if name in value:
                    yield from self.wrong(value[name], member, f"{place}: {name}")
        if isinstance(value, list):
            for element in value:
                yield from self.wrong(element, schema.get("items", {}), place)

    def value_of(self, schema, left_out, name=""):
        """Returns a value in which each member has a value, except those that are left out."""
        reference = schema.get("$ref", "").split("/")[-1]
        if reference in VALUES or name in VALUES_OF_MEMBERS:
            return VALUES.get(reference) or VALUES_OF_MEMBERS[name]
        schema = self.resolve(schema)
        if "oneOf" in schema:
            return self.value_of(schema["oneOf"][0], left_out)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        types = schema["type"]
        kind = types if isinstance(types, str) else types[0]
        if kind == "object":
            members = schema.get("properties", {})
            made = {member: self.value_of(members[member], left_out, member) for member in members
                    if member not in left_out}
            return made | {member: None for member in left_out & members.keys()
                           & set(schema.get("required", ()))}
        if kind == "array":
            return [self.value_of(schema["items"], left_out)]
        return {"string": "x", "integer": max(schema.get("minimum", 0), 1), "boolean": True}[kind]


def type_of(value):
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array",
             dict: "object"}
    return kinds.get(type(value), "null")


class Server:
    """Answers as the document says. `sent` has the members of the requests of each operation."""

    def __init__(self, document, left_out):
        self.document, self.left_out = document, left_out
        self.sent, self.wrong = collections.defaultdict(set), []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # head and body are sent one after the other

            def respond(self):
                text = self.rfile.read(int(self.headers.get("content-length", 0)))
                status, answer = outer.answer(self.command, self.path, text)
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = respond

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, method, target, text):
        path, _, query = target.partition("?")
        operation = self.document.find(method, path)
        if operation is None:
            self.wrong.append(f"{method} {path} is not in the document")
            return 404, {"type": "urn:detent:error:not_found", "title": "", "status": 404,
                         "detail": "no such operation"}
        parameters = dict(urllib.parse.parse_qsl(query))
        self.sent[operation] |= parameters.keys()
        for name in sorted(parameters.keys() - self.document.query_of(operation)):
            self.wrong.append(f"{operation}: the document has no parameter {name}")
        body = json.loads(text) if text else None
        schema = self.document.request_of(operation)
        if body is not None and schema is None:
            self.wrong.append(f"{operation}: the document has no body")
        elif body is not None:
            self.wrong += self.document.wrong(body, schema, operation)
            for one in body if isinstance(body, list) else [body]:
                self.sent[operation] |= one.keys()
        return self.made(operation, parameters, body)

    def made(self, operation, parameters, body):
        status, schema = self.document.answer_of(operation)
        answer = self.document.value_of(schema, self.left_out)
        if "cursor" in parameters and "cursor" in answer:
            answer["cursor"] = None  # the last page
        if "results" in answer:
            lists = [body] if isinstance(body, list) else [
                body[name] for name in ("ids", "keys", "leases") if name in body]
            answer["results"] *= len(lists[0])
        return status, answer

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def fields_of(value, place):
    """Yields (place, whether it has a value) for the fields of a result."""
    yield place, value not in (None, "", 0, False, [], {}, "0001-01-01T00:00:00Z")
    if isinstance(value, dict):
        for name, member in value.items():
            yield from fields_of(member, f"{place}.{name}")
    if isinstance(value, list):
        for element in value:
            yield from fields_of(element, place)


def differences(client, command, document, alternatives):
    """Returns the differences between a client and the document, as texts."""
    document = Document(document)
    sent, fields, wrong = collections.defaultdict(set), {}, []
    for left_out in alternatives:
        server = Server(document, left_out)
        run = subprocess.run([*map(str, command), server.url], capture_output=True, text=True,
                             timeout=PATIENCE, check=False)
        server.close()
        wrong += server.wrong
        if run.returncode != 0:
            wrong.append(f"the program failed: {run.stderr.strip()[-500:]}")
        for operation, members in server.sent.items():
            sent[operation] |= members
        for line in map(json.loads, run.stdout.splitlines()):
            if line["call"].lower() == "stats":
                continue  # returned as the server made it
            for place, has_value in fields_of(line.get("value"), line["call"]):
                fields[place] = fields.get(place, False) or has_value
    wrong += [f"{place} is empty" for place, has_value in fields.items()
              if not has_value and place.split(".")[-1] not in EMPTY]
    return wrong + [*missing(client, document, sent)]


def missing(client, document, sent):
    """Yields the operations and members of the document that a client did not send, and the entries
    of the lists above that are not in the document or were sent."""
    for operation in sorted(document.operations.keys() - sent.keys() - NOT_OFFERED.keys()):
        yield f"{operation} is not called"
    for operation in NOT_OFFERED.keys() - document.operations.keys():
        yield f"NOT_OFFERED: {operation} is not in the document"
    for operation, members in sent.items():
        if operation in NOT_OFFERED:
            yield f"NOT_OFFERED: {operation} is called"
        known = document.query_of(operation)
        if document.request_of(operation):
            known |= document.members_of(document.request_of(operation))
        left_out = {**NOT_SENT.get(operation, {}),
                    **NOT_SENT_BY.get(client, {}).get(operation, {})}
        for name in sorted(known - members - left_out.keys()):
            if f"{name}_ms" not in members:
                yield f"{operation}: {name} is not sent"
        for name in sorted(left_out.keys() & members | left_out.keys() - known):
            yield f"NOT_SENT: {operation}: {name} is sent, or not in the document"


class Drift(unittest.TestCase):
    """Each test runs with each client."""

    maxDiff = None

    def changed(self, change, expected=""):
        """Changes the document. Each client must have this difference; any, if it is empty."""
        alternatives = ALTERNATIVES[:1] if expected else ALTERNATIVES
        for client, command in CLIENTS.items():
            with self.subTest(client):
                document = copy.deepcopy(DOCUMENT)
                change(document["paths"], document["components"]["schemas"])
                found = differences(client, command, document, alternatives)
                self.assertTrue(found)
                self.assertIn(expected, "\n".join(found))

    def test_the_clients_are_as_the_document(self):
        for client, command in CLIENTS.items():
            with self.subTest(client):
                self.assertEqual(differences(client, command, DOCUMENT, ALTERNATIVES), [])

    def test_a_renamed_operation_is_found(self):
        def change(paths, _):
            paths["/v1/queues/{queue}/halt"] = paths.pop("/v1/queues/{queue}/pause")

        self.changed(change, "POST /v1/queues/q/pause is not in the document")

    def test_a_new_operation_is_found(self):
        def change(paths, _):
            paths["/v1/queues/{queue}/halt"] = paths["/v1/queues/{queue}/pause"]

        self.changed(change, "POST /v1/queues/{queue}/halt is not called")

    def test_a_removed_member_of_a_request_is_found(self):
        self.changed(lambda _, schemas: schemas["NewTask"]["properties"].pop("priority"),
                     "POST /v1/tasks: the document has no member priority")
        self.changed(lambda _, schemas: schemas["BackoffIn"]["properties"].pop("max_ms"),
                     "backoff: the document has no member max_ms")

    def test_a_new_member_of_a_request_is_found(self):
        def change(_, schemas):
            schemas["ReleaseRequest"]["properties"]["reason"] = {"type": "string"}

        self.changed(change, "POST /v1/leases/release: reason is not sent")

    def test_a_removed_parameter_is_found(self):
        def change(paths, _):
            parameters = paths["/v1/schedules/{name}/next"]["get"]["parameters"]
            parameters.remove(next(one for one in parameters if one["name"] == "count"))

        self.changed(change, "the document has no parameter count")

    def test_a_renamed_member_of_an_answer_is_found(self):
        for schema, member in (("LeasedTask", "lateness_ms"), ("AcceptedTask", "was_there"),
                               ("Queue", "bytes"), ("Schedule", "next_at")):
            def change(_, schemas, schema=schema, member=member):
                members = schemas[schema]["properties"]
                members["other"] = members.pop(member)
                if member in schemas[schema].get("required", ()):
                    schemas[schema]["required"].remove(member)

            self.changed(change)


def clients(cpp, node, go):
    found = {"python": [sys.executable, FOLDER / "python/all_calls.py"], "cpp": [cpp]}
    if pathlib.Path(node).exists() and TYPESCRIPT.exists():
        found["typescript"] = [node, FOLDER / "typescript/all_calls.mjs"]
    if pathlib.Path(go).exists():
        found["go"] = [go]
    for client in {"typescript", "go"} - found.keys():
        print(f"left out: {client}, because it is not compiled", flush=True)
    return found


if __name__ == "__main__":
    DOCUMENT = json.loads(pathlib.Path(sys.argv[1]).read_text())
    CLIENTS = clients(*sys.argv[2:5])
    unittest.main(argv=sys.argv[:1])
