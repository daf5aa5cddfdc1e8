"""Three brokers with the same interface. Each is a process of the test on a free port of
127.0.0.1.

url: the address for the file of --sinks. kill(): stops the broker immediately, with kill -9 if
possible. start(): starts it again with its stored data. messages(): (id, fields, body) of all
messages that it has, in its order.
"""

import base64
import json
import pathlib
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from child_programs import die_with_parent, free_port, wait_until  # found only now

PATIENCE = 120  # seconds


def wait_for(is_so, what):
    wait_until(is_so, PATIENCE, what)


class Broker:
    """A broker that is a program with a port."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="detent-sink-")
        self.port = free_port()
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [*map(str, self.command())], cwd=self.folder.name, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        wait_for(self.is_ready, f"{self.process.args[0]} listens")

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def close(self):
        self.kill()
        self.folder.cleanup()


class Redis(Broker):
    password = "s3cr%t@x"

    def command(self):
        return ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--requirepass",
                self.password, "--save", "", "--appendonly", "yes", "--appendfsync", "always"]

    @property
    def url(self):
        return f"redis://:s3cr%25t%40x@127.0.0.1:{self.port}/due"

    def ask(self, *command):
        return subprocess.run(
            ["redis-cli", "-p", str(self.port), "-a", self.password, "--no-auth-warning", "--json",
             *command], capture_output=True, text=True, check=False).stdout

    def is_ready(self):
        return "PONG" in self.ask("PING")

    def messages(self):
        for _, flat in json.loads(self.ask("XRANGE", "due", "-", "+")):
            fields = dict(zip(flat[::2], flat[1::2]))
            yield fields.pop("id"), fields, fields.pop("payload")


class Nats(Broker):
    """nats-server with a JetStream stream on disk that stores the subject `due`."""

    def command(self):
        return ["nats-server", "-a", "127.0.0.1", "-p", self.port, "-js", "-sd",
                pathlib.Path(self.folder.name) / "js", "--user", "ada", "--pass", "s3cret"]

    def start(self):
        super().start()
        self.ask("$JS.API.STREAM.CREATE.DUE",
                 {"name": "DUE", "subjects": ["due"], "storage": "file", "retention": "limits",
                  "max_msg_size": 100_000})

    @property
    def url(self):
        return f"nats://ada:s3cret@127.0.0.1:{self.port}/due"

    def is_ready(self):
        try:
            return "account_info" in json.dumps(self.ask("$JS.API.INFO", {}))
        except OSError:
            return False

    def ask(self, subject, request):
        """Sends one request to the JetStream API. The NATS protocol consists of lines of text."""
        body = json.dumps(request).encode()
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            stream = connection.makefile("rwb")
            stream.readline()  # INFO
            login = json.dumps({"verbose": False, "user": "ada", "pass": "s3cret"}).encode()
            stream.write(b"CONNECT " + login + b"\r\nSUB answer 1\r\n")
            stream.write(f"PUB {subject} answer {len(body)}\r\n".encode() + body + b"\r\n")
            stream.flush()
            for line in stream:
                if line.startswith(b"MSG "):
                    return json.loads(stream.read(int(line.split()[-1])))
                if line.startswith(b"-ERR"):
                    raise OSError(line.decode())
        raise OSError("no answer")

    def messages(self):
        state = self.ask("$JS.API.STREAM.INFO.DUE", {})["state"]
        for number in range(state["first_seq"], state["last_seq"] + 1):
            message = self.ask("$JS.API.STREAM.MSG.GET.DUE", {"seq": number})["message"]
            lines = base64.b64decode(message["hdrs"]).decode().split("\r\n")[1:]
            fields = dict(line.split(": ", 1) if ": " in line else line.split(":", 1)
                          for line in lines if line)
            body = base64.b64decode(message.get("data", "")).decode()
            yield fields.pop("Nats-Msg-Id"), fields, body


class Kafka:
    """librdkafka's mock cluster (kafka_mock.cc). Its messages are in memory, so it is not killed.
    Its broker goes down and comes up, like a broker that cannot be reached."""

    program = None

    def __init__(self):
        self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        preexec_fn=die_with_parent)
        self.address = self.process.stdout.readline().split()[1]

    @property
    def url(self):
        # Do not wait the usual 30 s for messages that a test has prevented.
        return (f"kafka://{self.address}/due?message.timeout.ms=2000&reconnect.backoff.max.ms=200"
                "&message.max.bytes=100000&sasl.password=s3cret")

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def start(self):
        self.say("up")
        self.process.stdout.readline()

    def kill(self):
        self.say("down")
        self.process.stdout.readline()

    def refuse_a_batch(self):
        self.say("refuse")
        self.process.stdout.readline()

    def messages(self):
        self.say("list")
        text = lambda digits: bytes.fromhex(digits).decode()
        for line in iter(self.process.stdout.readline, "end\n"):
            message = json.loads(line)
            fields = {text(name): text(value) for name, value in message["fields"].items()}
            yield text(message["key"]), fields, text(message["body"])

    def close(self):
        self.process.kill()
        self.process.communicate()
