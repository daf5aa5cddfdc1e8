"""cluster_worker.py URL QUEUE: a worker that tests/cluster/clients_test.py controls.

It reads the commands `go` (let handlers return), `hold` (let handlers wait) and `stop`. It prints
`began PAYLOAD`, `done PAYLOAD` (or `abandoned PAYLOAD`) and `error TEXT`.
"""

import sys
import threading

import detent

may_return = threading.Event()
printing = threading.Lock()


def say(*words):
    with printing:
        print(*words, flush=True)


def handle(task):
    say("began", task.payload)
    may_return.wait()
    say("abandoned" if task.abandoned.is_set() else "done", task.payload)


client = detent.Client(sys.argv[1], retry_for=5)
worker = detent.Worker(client, sys.argv[2], handle, concurrency=10, prefetch=20, wait=1,
                       visibility_timeout=30, on_error=lambda error: say("error", error))
worker.start()
for line in sys.stdin:
    if line == "stop\n":
        break
    (may_return.set if line == "go\n" else may_return.clear)()
may_return.set()
worker.stop()
