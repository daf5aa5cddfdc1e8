"""all_calls.py URL: makes each call of the client once, with all arguments, for openapi_test.py. It
prints each result as a line of JSON: {"call": NAME, "value": RESULT}.
"""

import dataclasses
import json
import sys
from datetime import datetime, timezone

import detent
from detent.values import Backoff

NOW = datetime.now(timezone.utc)
KEY = detent.TaskKey("q", "k")
BACKOFF = Backoff(1, 60)
TASK = {"delay": 1, "key": "k", "on_key": "replace", "max_wait": 60, "priority": 7,
        "max_attempts": 2, "visibility_timeout": 30, "backoff": BACKOFF, "webhook": "http://a/",
        "headers": {"X-A": "b"}}
RULES = {"priority": 7, "max_attempts": 2, "visibility_timeout": 30, "backoff": BACKOFF,
         "time_zone": "UTC", "gap": "skip", "repeat": "first", "count": 5, "start": NOW, "end": NOW,
         "jitter": 1, "misfire": "all", "misfire_grace": 1, "misfire_limit": 5, "overlap": "skip"}


def plain(value):
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return str(value)  # instants, bytes and errors


def say(call, value):
    print(json.dumps({"call": call, "value": value}, default=plain))


def main(url):
    client = detent.Client(url, retry_for=0)
    say("schedule", client.schedule("q", {"n": 1}, **TASK))
    client.schedule("q", b"\xff", due_at=NOW)
    say("schedule_many", client.schedule_many(
        [detent.NewTask("q", 1, **TASK), detent.NewTask("q", b"\xff", due_at=NOW)]))
    say("get", client.get("256"))
    client.get(KEY)
    page = client.list(queue="q", state="dead", key="k", due_after=NOW, due_before=NOW, limit=5)
    say("list", page)
    client.list(cursor="c")
    client.cancel("256")
    client.cancel(KEY)
    client.cancel_many(["1", "2"])
    client.cancel_many([KEY])
    for name in ("256", KEY):
        say("move", client.move(name, delay=1))
        client.move(name, due_at=NOW)
        say("move_many", client.move_many([name], delay=1))
        client.move_many([name], due_at=NOW)
    say("run_now", client.run_now("256"))
    say("lease", client.lease("q", max=5, wait=1, visibility_timeout=30, worker="w"))
    say("complete", client.complete(["1-1", "1-2"]))
    say("fail", client.fail(["1-1"], error="e", delay=1))
    say("fail", client.fail(["1-1"], error="e", final=True))
    say("extend", client.extend(["1-1"], 30))
    say("release", client.release(["1-1"], delay=1, priority=7))
    say("queues", client.queues())
    say("queue", client.queue("q"))
    say("change_queue", client.change_queue(
        "q", paused=True, max_attempts=2, visibility_timeout=30, backoff=BACKOFF, retention=1,
        key_retention=1, max_tasks=5, max_bytes=5, rate=5, concurrency=5, webhook="http://a/",
        sink="s", partitions=2))
    client.remove_queue("q")
    say("pause", client.pause("q"))
    say("resume", client.resume("q"))
    say("purge", client.purge("q"))
    say("redrive", client.redrive("q"))
    say("put_schedule", client.put_schedule("s", queue="q", payload=1, cron="* * * * *", **RULES))
    client.put_schedule("s", queue="q", payload=b"\xff", every=60, anchor=NOW)
    client.put_schedule("s", queue="q", calendar={"every": 1, "unit": "day", "month_end": "skip"})
    say("get_schedule", client.get_schedule("s"))
    say("schedules", client.schedules())
    say("next_occurrences", client.next_occurrences("s", 3))
    say("pause_schedule", client.pause_schedule("s"))
    say("resume_schedule", client.resume_schedule("s"))
    say("trigger_schedule", client.trigger_schedule("s"))
    client.remove_schedule("s")
    say("stats", client.stats())


main(sys.argv[1])
