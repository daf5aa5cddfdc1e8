#!/usr/bin/env python3
"""Orders that are cancelled when they are not paid within 30 days.

    PYTHONPATH=clients/python python3 clients/python/examples/orders.py [URL]

Places two orders. The first order is paid, so its cancellation is cancelled. For the second order,
the example skips the 30 days, and the worker cancels it. Then it works on due tasks until SIGTERM
or Ctrl-C.
"""

import sys
import time

from detent import Client, TaskKey, Worker


def main(url):
    client = Client(url)
    # New numbers for each run: a key stands for its order for some time after the task has ended.
    paid, unpaid = (f"o-{time.time_ns()}-{i}" for i in (1, 2))
    for order in (paid, unpaid):
        # With a key you can repeat this call, even if its answer was lost.
        client.schedule("orders", {"order": order}, delay="30d", key=order)

    client.cancel(TaskKey("orders", paid))
    print(f"{paid} is paid: its cancellation is cancelled", flush=True)
    client.move(TaskKey("orders", unpaid), delay=0)  # 30 days later

    def cancel_order(task):
        print(f"{task.payload['order']} is due: cancelled", flush=True)
        print("working until SIGTERM", flush=True)

    Worker(client, "orders", cancel_order, concurrency=4).run()
    print("stopped")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7070")
