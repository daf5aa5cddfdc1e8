#!/usr/bin/env python3
"""slow_sockets.py PROGRAM [--sockets 5000] [--rounds 3]

Measures the effect of slow clients on a fast client.

Starts the server on a new folder and measures the time of POST /v1/tasks on one connection with
keep-alive, with and without slow clients. Each slow client sends a request at one byte per second.
The server closes its connection if the request is not complete after ten seconds; then it connects
again. Rounds with and without slow clients alternate. Prints the medians of p50 and p99 over the
rounds, and their ratio.
"""

import argparse
import http.client
import multiprocessing
import re
import resource
import select
import socket
import statistics
import subprocess
import tempfile
import time

REQUESTS = 3_000
START = b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"


def be_slow(port, count, is_there, stop):
    """Keeps `count` connections open and sends a byte per second on each. Tells when all exist."""
    poll = select.epoll()
    held = {}

    def connect():
        client = socket.create_connection(("127.0.0.1", port))
        client.send(START)
        client.setblocking(False)
        held[client.fileno()] = client
        poll.register(client, select.EPOLLIN | select.EPOLLHUP)

    for _ in range(count):
        connect()
    is_there.set()
    while not stop.is_set():
        began = time.monotonic()
        for client in list(held.values()):
            try:
                client.send(b"a")
            except OSError:
                pass  # closed by the server; the poll below reports it
        for number, _ in poll.poll(max(0, began + 1 - time.monotonic())):
            poll.unregister(number)
            held.pop(number).close()
            connect()


def measure(port):
    """p50 and p99 of one client's requests, in milliseconds."""
    client = http.client.HTTPConnection("127.0.0.1", port)
    times = []
    for _ in range(REQUESTS):
        began = time.perf_counter()
        client.request("POST", "/v1/tasks", '{"queue":"q","delay":"1h"}')
        client.getresponse().read()
        times.append((time.perf_counter() - began) * 1_000)
    times.sort()
    return times[REQUESTS // 2], times[REQUESTS * 99 // 100]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--sockets", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [arguments.program, "serve", "--data", folder, "--http", "127.0.0.1:0", "--beanstalk",
             "off"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = int(re.search(r":(\d+)", server.stdout.readline().split("http", 1)[1])[1])
        alone, beside = [], []
        for _ in range(arguments.rounds):
            alone.append(measure(port))
            is_there, stop = multiprocessing.Event(), multiprocessing.Event()
            slow = multiprocessing.Process(target=be_slow,
                                           args=(port, arguments.sockets, is_there, stop))
            slow.start()
            is_there.wait()
            beside.append(measure(port))
            stop.set()
            slow.join()
        server.terminate()
        server.wait()
    median = lambda rounds, part: statistics.median(figures[part] for figures in rounds)
    for part, name in enumerate(("p50", "p99")):
        was, became = median(alone, part), median(beside, part)
        print(f"{name}  alone {was:.2f} ms  beside {arguments.sockets} slow ones {became:.2f} ms"
              f"  ratio {became / was:.2f}")


if __name__ == "__main__":
    main()
