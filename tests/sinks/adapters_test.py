"""Tests each kind of sink with its real broker, without a server. Acknowledged messages must be
in the broker, even if the broker goes down and comes back. A refused message must differ from a
broker that is down.

    python3 adapters_test.py KAFKA_MOCK SEND_TO_SINK
"""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import unittest

from brokers import Kafka, Nats, Redis, wait_for
from child_programs import die_with_parent


class Sender:
    def __init__(self, url):
        self.process = subprocess.Popen([SENDER, url], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        preexec_fn=die_with_parent)

    def send(self, count, size=10):
        """Returns how many were acknowledged, refused and failed, and the last error."""
        self.process.stdin.write(f"{count} {size}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        *counts, error = re.match(r"acknowledged (\d+) refused (\d+) failed (\d+) (.*)",
                                  line).groups()
        return (*map(int, counts), error)

    def send_until_acknowledged(self):
        """Sends single messages until one is acknowledged. The sink connects again by itself."""
        wait_for(lambda: self.send(1)[0] == 1, "one is acknowledged")

    def close(self):
        """Ends the program, which gives up its open messages. Returns its exit status."""
        self.process.stdin.close()
        status = self.process.wait(60)
        self.process.stdout.close()
        return status

    def end(self):
        if not self.process.stdin.closed:
            self.process.kill()
            self.process.communicate()


class FakeRedis:
    """Answers every request with the same bytes."""

    def __init__(self, answer):
        self.answer = answer
        self.connections = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}/due"
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        try:
            while True:
                connection = self.listener.accept()[0]
                self.connections.append(connection)
                connection.recv(1 << 16)
                connection.sendall(self.answer)
        except OSError:
            pass  # the connection was closed

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        for held in (self.listener, *self.connections):
            held.close()


class Cases:
    def setUp(self):
        self.broker = self.make()
        self.addCleanup(self.broker.close)

    def sender(self):
        sender = Sender(self.broker.url)
        self.addCleanup(sender.end)
        return sender

    def ids(self):
        return {int(name) for name, _, _ in self.broker.messages()}

    def test_what_is_acknowledged_is_there(self):
        sender = self.sender()
        sender.send_until_acknowledged()
        self.assertEqual(sender.send(2_000)[:3], (2_000, 0, 0))
        messages = list(self.broker.messages())
        self.assertGreaterEqual(len(messages), 2_001)
        _, fields, body = messages[-1]
        self.assertEqual((fields["a"], body), ("b c", "x" * 10))
        self.assertEqual(sender.close(), 0)

    def test_a_broker_that_is_away_fails_all_and_is_found_again(self):
        sender = self.sender()
        sender.send_until_acknowledged()
        self.broker.kill()
        acknowledged, refused, failed, error = sender.send(500)
        self.assertEqual((acknowledged, refused, failed), (0, 0, 500), error)
        self.assertNotIn("s3cr", error)
        self.broker.start()
        sender.send_until_acknowledged()
        before = self.ids()
        self.assertEqual(sender.send(500)[:3], (500, 0, 0))
        self.assertEqual(len(self.ids() - before), 500)

    def test_it_ends_while_the_broker_is_away(self):
        self.broker.kill()
        sender = self.sender()
        self.assertEqual(sender.send(10)[2], 10)
        self.assertEqual(sender.close(), 0)


class ToRedis(Cases, unittest.TestCase):
    make = Redis

    def test_a_key_that_is_no_stream_refuses_and_a_wrong_password_is_not_its_fault(self):
        sender = self.sender()
        self.broker.ask("SET", "due", "text")
        self.assertEqual(sender.send(3)[1], 3)
        wrong = Sender(self.broker.url.replace("s3cr", "s4cr"))
        self.addCleanup(wrong.end)
        *counts, error = wrong.send(3)
        self.assertEqual(counts, [0, 0, 3])
        self.assertIn("log-in", error)

    def test_what_is_no_redis_or_answers_another_error_is_none_of_the_messages_faults(self):
        for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"-TRYAGAIN wait\r\n",
                       b"-ERR max number of clients reached\r\n"):
            server = FakeRedis(answer)
            self.addCleanup(server.close)
            sender = Sender(server.url)
            self.addCleanup(sender.end)
            *counts, error = sender.send(1)
            self.assertEqual(counts, [0, 0, 1], error)

    def test_one_time_out_fails_all_that_wait(self):
        server = FakeRedis(b"")
        self.addCleanup(server.close)
        sender = Sender(server.url)
        self.addCleanup(sender.end)
        *counts, error = sender.send(1_000)
        self.assertEqual(counts, [0, 0, 1_000], error)
        self.assertEqual(len(server.connections), 1)

    def test_fields_of_a_task_take_the_place_of_no_other(self):
        sender = self.sender()
        sender.send_until_acknowledged()
        name, fields, body = list(self.broker.messages())[-1]
        self.assertGreater(int(name), 0)
        self.assertEqual((fields, body), ({"a": "b c", "Nats-Rollup": "all"}, "x" * 10))

    def test_maxlen_lets_the_oldest_go(self):
        self.broker.ask("CONFIG", "SET", "stream-node-max-entries", "10")
        sender = Sender(self.broker.url + "?maxlen=100")
        self.addCleanup(sender.end)
        self.assertEqual(sender.send(1_000)[0], 1_000)
        ids = self.ids()
        self.assertLess(len(ids), 150)
        self.assertIn(1_000, ids)

    def test_out_of_memory_is_none_of_the_messages_faults(self):
        self.broker.ask("CONFIG", "SET", "maxmemory", "1")
        *counts, error = self.sender().send(3)
        self.assertEqual(counts, [0, 0, 3], error)


class ToNats(Cases, unittest.TestCase):
    make = Nats

    def test_what_a_stream_refuses_and_where_there_is_none(self):
        sender = self.sender()
        sender.send_until_acknowledged()
        *counts, error = sender.send(2, 200_000)
        self.assertEqual(counts, [0, 2, 0], error)
        self.assertIn("message size exceeds", error)
        # Larger than the server accepts; the last message is too large only with its headers.
        for size in (2_000_000, 2 ** 20 + 1, 2 ** 20 - 40):
            *counts, error = sender.send(1, size)
            self.assertEqual(counts, [0, 1, 0], error)
            self.assertIn("at most 1048576 bytes", error)
        self.broker.ask("$JS.API.STREAM.DELETE.DUE", {})
        *counts, error = sender.send(2)
        self.assertEqual(counts, [0, 0, 2], error)
        self.assertIn("no JetStream stream has the subject due", error)

    def test_a_stream_that_takes_nothing_is_none_of_the_messages_faults(self):
        sender = self.sender()
        sender.send_until_acknowledged()
        self.broker.ask("$JS.API.STREAM.UPDATE.DUE",
                        {"name": "DUE", "subjects": ["due"], "storage": "file",
                         "max_msg_size": 100_000, "sealed": True})
        *counts, error = sender.send(2)
        self.assertEqual(counts, [0, 0, 2], error)
        self.assertIn("sealed", error)

    def test_a_server_that_reads_nothing_holds_up_nobody(self):
        sender = self.sender()
        sender.send_until_acknowledged()
        self.broker.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.broker.process.pid, os.WSTOPPED)  # all threads are stopped
        *counts, error = sender.send(500, 90_000)  # more than the kernel buffers for a connection
        self.assertEqual(counts, [0, 0, 500], error)
        self.broker.process.send_signal(signal.SIGCONT)
        sender.send_until_acknowledged()

    def test_headers_that_command_a_stream_are_left_out(self):
        self.broker.ask("$JS.API.STREAM.UPDATE.DUE",
                        {"name": "DUE", "subjects": ["due"], "storage": "file",
                         "allow_rollup_hdrs": True})
        sender = self.sender()
        sender.send_until_acknowledged()
        self.assertEqual(sender.send(10)[0], 10)
        self.assertGreaterEqual(len(list(self.broker.messages())), 11)

    def test_a_second_message_of_an_id_is_stored_once(self):
        for _ in range(2):
            sender = self.sender()
            sender.send_until_acknowledged()
            sender.close()
        self.assertEqual(len(list(self.broker.messages())), len(self.ids()))


class ToKafka(Cases, unittest.TestCase):
    make = Kafka

    def test_a_message_that_is_too_large_is_refused(self):
        sender = self.sender()
        *counts, error = sender.send(2, 200_000)
        self.assertEqual(counts, [0, 2, 0], error)
        self.assertEqual(sender.send(2)[0], 2)

    def test_no_setting_keeps_acknowledgements_away(self):
        sender = Sender(self.broker.url + "&delivery.report.only.error=true&acks=0")
        self.addCleanup(sender.end)
        self.assertEqual(sender.send(2)[0], 2)

    def test_a_batch_that_is_too_large_is_none_of_the_messages_faults(self):
        sender = self.sender()
        sender.send_until_acknowledged()
        self.broker.refuse_a_batch()
        *counts, error = sender.send(1)
        self.assertEqual(counts, [0, 0, 1], error)
        sender.send_until_acknowledged()


if __name__ == "__main__":
    Kafka.program, SENDER = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
